/** The job that runs the handler of new dead letters, if there is one. */
export const DEAD_LETTER_JOB = 'holdfast.dead-letter'
