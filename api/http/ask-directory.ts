import { ControlRecordError } from '../../shared/directory/record.ts'
import { describeError, TransientError } from '../../shared/runtime/errors.ts'

/** What the control store answers. Redis being away passes, and is a TransientError; a record that is not ours does not. */
export async function askControlStore<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof ControlRecordError) throw error
    throw new TransientError(`the control store cannot be asked: ${describeError(error)}`, { cause: error })
  }
}
