import type { Examined } from '../command-context.ts'
import { type Finding, found } from './check.ts'

/** An object that this check writes, reads and removes. */
const KEY = 'doctor-check'
const BODY = Buffer.from('written by penstock doctor, which removes it\n')

/** Writes, reads and removes an object. */
export async function checkBucket({ objects, config }: Examined): Promise<Finding[]> {
  await objects.put(KEY, BODY, { contentType: 'text/plain' })
  const read = await objects.get(KEY, BODY.length)
  await objects.deleteMany([KEY])
  if (read?.body.equals(BODY)) return [found.ok(`${config.S3_BUCKET} can be written and read`)]
  return [found.fault(`${config.S3_BUCKET} does not return what was written to it`)]
}
