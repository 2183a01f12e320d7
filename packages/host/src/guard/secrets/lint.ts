import { lintSource } from '@secretlint/core'
import { rules } from '@secretlint/secretlint-rule-preset-recommend'

/** Only the thread loads this: it takes a tenth of a second and some megabytes. */
type Rule = (typeof rules)[number]

/** so many of one rule are enough; secretlint compares each with all others */
const mostOfOneRule = 16

/** With it, a text could say of itself that it is not to be searched. */
const obeysComments = '@secretlint/secretlint-rule-filter-comments'
const aws = '@secretlint/secretlint-rule-aws'

const bounded = (rule: Rule): Rule => ({
  ...rule,
  create(context, options) {
    let left = mostOfOneRule
    const report: typeof context.report = descriptor => {
      if (left-- > 0) context.report(descriptor)
    }
    return rule.create({ ...context, report }, options)
  },
})

const config = {
  rules: rules
    .filter(({ meta }) => meta.id !== obeysComments)
    .map(rule => ({
      id: rule.meta.id,
      rule: bounded(rule),
      // A key's identifier is not secret itself, but seldom comes alone; an account's number is in every address.
      ...(rule.meta.id === aws
        ? { options: { enableIDScanRule: true }, allowMessageIds: ['AWSAccountID'] }
        : {}),
    })),
}

export async function lint(text: string): Promise<{ kind: string; index: number }[]> {
  const { messages } = await lintSource({
    source: { content: text, filePath: 'payload', ext: '.txt', contentType: 'text' },
    options: { config, noPhysicFilePath: true, maskSecrets: true },
  })
  return messages.map(({ messageId, range }) => ({ kind: asWords(messageId), index: range[0] }))
}

/** `SLACK_TOKEN` and `AWSSecretAccessKey` as `slack_token` and `aws_secret_access_key` */
const asWords = (id: string): string =>
  id.replaceAll(/(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/g, '_').toLowerCase()
