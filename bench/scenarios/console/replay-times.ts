import type { Page } from 'playwright-core'
import { errorMessage } from '../../../shared/runtime/errors.ts'
import { windowOf } from '../../../test/support/console/long-recording.ts'
import { pictureText } from '../../../test/support/console/player-page.ts'
import { pollUntil } from '../../support/poll-until.ts'

const DEADLINE_MS = 30_000
/** Between two looks at the picture, each of which is a request to the browser. */
const LOOK_EVERY_MS = 4

/** The recording that is measured. */
export interface PlayedRecording {
  readonly url: string
  readonly startMs: number
  readonly seconds: number
}

/** Opens the session of a recording from another page. Milliseconds until its first picture is there. */
export async function openRecording(page: Page, pipelineUrl: string, { url }: PlayedRecording): Promise<number> {
  await page.bringToFront()
  await page.goto(pipelineUrl)
  await page.getByRole('heading', { level: 1, name: 'Pipeline' }).waitFor()
  const begun = performance.now()
  await page.goto(url)
  await untilPicture(page, `second 0 of ${windowOf(0)}`)
  return performance.now() - begun
}

/** Clicks on the seek bar at this share of its width. Milliseconds until the picture is that of the time that is chosen. */
export async function seek(page: Page, share: number, { startMs, seconds }: PlayedRecording): Promise<number> {
  const bar = await page.getByRole('slider', { name: 'Time of the recording' }).boundingBox()
  if (!bar) throw new Error('there is no seek bar')
  const begun = performance.now()
  await page.mouse.click(bar.x + share * bar.width, bar.y + 4)
  const at = Date.parse(await page.evaluate<string>("new URLSearchParams(location.search).get('t')"))
  const second = Math.min(Math.floor((at - startMs) / 1_000), seconds - 1)
  await untilPicture(page, `second ${second} of ${windowOf(second)}`)
  return performance.now() - begun
}

async function untilPicture(page: Page, text: string): Promise<void> {
  let shown: string | undefined
  const isShown = async () => {
    shown = await pictureText(page)
    return shown === text
  }
  try {
    await pollUntil(text, DEADLINE_MS, isShown, LOOK_EVERY_MS)
  } catch (error) {
    throw new Error(`${errorMessage(error)}; the picture shows ${shown ?? 'nothing'}`)
  }
}
