/** Messages up to this size are limited by their number alone. The index of the larger ones names it, too. */
export const largeMessageBytes = 1024
