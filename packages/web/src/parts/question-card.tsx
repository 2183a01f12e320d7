import type { GivenAnswer, QuestionCard as Question } from '@hatchway/host/api-types'
import { useState } from 'react'
import { useAction } from '../live/use-action.ts'
import { useKeptFocus } from './keep-focus.ts'
import { visible } from './text.ts'

/** A question of an agent's, to be answered with a click or in one's own words. */
const endings = { expired: 'Nobody answered in time.', withdrawn: 'This is no longer needed.' } as const

/** what is being written, by the field's id: whoever comes back finds it again */
const drafts = new Map<string, string>()

export type Choice = { option: number } | { text: string }

interface QuestionProps {
  card: Question
  canAnswer: boolean
  /** `question` counts from 1 */
  choose: (question: number, choice: Choice) => Promise<void>
  /** where the keyboard goes on once there is nothing left to answer here */
  leave?: () => void
}

export function QuestionCard({ card, canAnswer, choose, leave = () => {} }: QuestionProps) {
  const { attempt, isBusy, error } = useAction()
  const kept = useKeptFocus(JSON.stringify([card.status, card.answers]), leave)
  const isOpen = card.status === 'open' && canAnswer
  return (
    <div className={`card ${card.status}`} {...kept}>
      {card.questions.map((question, i) => {
        const given = card.answers[i] ?? null
        const id = `question-${card.id}-${i + 1}`
        const isOff = !isOpen || given !== null
        const answer = (choice: Choice) =>
          attempt(async () => {
            await choose(i + 1, choice)
            drafts.delete(id)
          })
        return (
          // Not disabled while it is being sent, which would take the keyboard's place away.
          <fieldset key={id} disabled={isOff} aria-busy={isBusy}>
            <legend>
              {card.questions.length > 1 ? `${i + 1}. ` : ''}
              {visible(question.question)}
            </legend>
            {(question.options ?? []).length > 0 && (
              <Options id={id} options={question.options ?? []} given={given} answer={answer} />
            )}
            {!isOff && <OwnWords id={id} question={question.question} answer={answer} />}
            {given && (
              <p className="given">
                <span className="who">Answered by {visible(given.by)}: </span>
                {visible(given.answer)}
              </p>
            )}
          </fieldset>
        )
      })}
      {(card.status === 'expired' || card.status === 'withdrawn') && (
        <p className="ending">{endings[card.status]}</p>
      )}
      <p className="error" role="alert">
        {error}
      </p>
    </div>
  )
}

interface OptionsProps {
  id: string
  options: NonNullable<Question['questions'][number]['options']>
  given: GivenAnswer | null
  answer: (choice: Choice) => void
}

const Options = ({ id, options, given, answer }: OptionsProps) => (
  <ul className="options">
    {options.map(({ label, description }, i) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: options are known by their number
      <li key={i}>
        <button
          type="button"
          className="option"
          id={`${id}-${i + 1}`}
          aria-pressed={given?.option === i + 1}
          onClick={() => answer({ option: i + 1 })}
        >
          <span className="number">{i + 1}</span>
          <span className="label">
            {visible(label)}
            {description !== undefined && <small>{visible(description)}</small>}
          </span>
        </button>
      </li>
    ))}
  </ul>
)

interface OwnWordsProps {
  id: string
  question: string
  answer: (choice: Choice) => void
}

function OwnWords({ id, question, answer }: OwnWordsProps) {
  const [words, setWords] = useState(drafts.get(id) ?? '')
  return (
    <form
      className="spoken"
      onSubmit={event => {
        event.preventDefault()
        if (words.trim() !== '') answer({ text: words })
      }}
    >
      <input
        type="text"
        id={`${id}-words`}
        maxLength={20_000}
        autoComplete="off"
        placeholder="In your own words"
        aria-label={`In your own words: ${visible(question)}`}
        value={words}
        onChange={event => {
          drafts.set(id, event.target.value)
          setWords(event.target.value)
        }}
      />
      <button type="submit">Answer</button>
    </form>
  )
}
