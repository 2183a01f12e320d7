/** The few pages that whoever is not signed in gets. They hold nothing but our own words. */
const page = (title: string, head: string, body: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="stylesheet" href="/sign-in.css">
<link rel="icon" href="/icon.svg">${head}
</head>
<body><main><h1>${title}</h1>${body}</main></body>
</html>
`

/** Not a redirect: a browser that came here from elsewhere would leave the new cookie out once more. */
export const signedInPage = page(
  'Hatchway',
  '\n<meta http-equiv="refresh" content="0; url=/">',
  '<p><a href="/">To the console</a></p>',
)

const linkHint =
  'Run <code>npx hatchway open</code> on the host: it opens the console with its link, and prints it. The link ends in <code>?token=…</code>'

const providerLink = '<p><a class="button" href="/api/oidc/login">Sign in with your organisation</a></p>'

/** No form: what is typed goes nowhere but where the script sends it. */
const fields = `<div id="fields">
<label>Name <input id="name" autocomplete="username" maxlength="64" autofocus></label>
<label>Password <input id="password" type="password" autocomplete="current-password" maxlength="1024"></label>
<button id="enter" type="button">Sign in</button>
<p id="problem" role="alert"></p>
</div>`

export function strangerPage({ password, oidc }: { password: boolean; oidc: string | null }): string {
  if (!password && oidc === null) return page('Hatchway does not know this browser', '', `<p>${linkHint}</p>`)
  return page(
    'Hatchway does not know this browser',
    password ? '\n<script type="module" src="/sign-in.js"></script>' : '',
    `${oidc === null ? '' : providerLink}${password ? fields : ''}<p class="aside">${linkHint}</p>`,
  )
}

/** `message` is one of ours, but may name what somebody else chose. */
export const refusedPage = (message: string): string =>
  page(
    'That did not work',
    '',
    `<p>${message.replace(/[&<>"']/g, each => `&#${each.charCodeAt(0)};`)}</p><p><a href="/">Back</a></p>`,
  )
