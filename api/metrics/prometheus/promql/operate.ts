/** Returns the value of an operator for two numbers. A comparison is 1 or 0. */
export function operate(operator: string, a: number, b: number): number {
  switch (operator) {
    case '+':
      return a + b
    case '-':
      return a - b
    case '*':
      return a * b
    case '/':
      return a / b
    case '%':
      return a % b
    case '^':
      return a ** b
    case '==':
      return Number(a === b)
    case '!=':
      return Number(a !== b)
    case '>':
      return Number(a > b)
    case '<':
      return Number(a < b)
    case '>=':
      return Number(a >= b)
    case '<=':
      return Number(a <= b)
    default:
      throw new TypeError(`no operator is called ${operator}`)
  }
}
