/** What has to be taken down in the end, however that comes: the last first. */
export interface Closing {
  add(step: () => Promise<void> | void): void
  close(): Promise<void>
}

export function createClosing(): Closing {
  let steps: (() => Promise<void> | void)[] = []
  return {
    add: step => void steps.push(step),
    async close() {
      const all = steps.toReversed()
      steps = []
      for (const step of all) {
        try {
          await step()
        } catch (error) {
          console.error('something could not be taken down:', error)
        }
      }
    },
  }
}
