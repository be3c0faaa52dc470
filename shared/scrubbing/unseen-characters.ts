/**
 * Characters that a reader does not see, or that change how others are shown: controls, formats such as marks of direction and
 * tags, separators of lines, variation selectors, which can encode a hidden text, halves of surrogate pairs, and characters of
 * private use. Line feeds and tabs are among them.
 */
export const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Variation_Selector}]/gu
