export interface ShellSettings {
  /** how long the host may take to decide, with a person who is asked */
  decisionMs: number
  /** how long it may take to begin */
  answerMs: number
  fileBytes: number
}

/** Read without a schema: the library for those takes longer to load than a harmless command to be let through. */
export function readShellSettings(variables: NodeJS.ProcessEnv): ShellSettings {
  const whole = (name: string, otherwise: number): number => {
    const text = variables[name] || String(otherwise)
    const value = Number(text)
    if (!/^\d+$/.test(text) || value < 1 || value > 1_000_000_000)
      throw new Error(`The environment is not as it should be. ${name}: is not a whole number above 0`)
    return value
  }
  return {
    decisionMs: whole('HATCHWAY_SHELL_TIMEOUT_MS', 330_000),
    answerMs: whole('HATCHWAY_ANSWER_TIMEOUT_MS', 120_000),
    fileBytes: whole('HATCHWAY_LIMITS_FILE_BYTES', 1_048_576),
  }
}
