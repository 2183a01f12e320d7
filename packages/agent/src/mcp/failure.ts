/** Standard output belongs to the protocol; whatever else there is to say goes where clients show it as a log. */
export const complain = (message: string): void => void process.stderr.write(`hatchway: ${message}\n`)
