/** Sends what was typed to the host, and goes on where the person wanted to go. */
const field = id => /** @type {HTMLInputElement} */ (document.getElementById(id))
const button = /** @type {HTMLButtonElement} */ (document.getElementById('enter'))
const problem = /** @type {HTMLElement} */ (document.getElementById('problem'))

async function enter() {
  if (button.disabled) return
  button.disabled = true
  problem.textContent = ''
  try {
    const response = await fetch('/api/login', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name: field('name').value, password: field('password').value }),
    })
    if (response.ok) return location.reload()
    const answer = await response.json().catch(() => undefined)
    problem.textContent = answer?.error?.message ?? `The host answered ${response.status}.`
    field('password').value = ''
    field('password').focus()
  } catch {
    problem.textContent = 'The host cannot be reached.'
  } finally {
    button.disabled = false
  }
}

button.addEventListener('click', enter)
for (const id of ['name', 'password']) {
  field(id).addEventListener('keydown', event => {
    if (event.key === 'Enter') enter()
  })
}
