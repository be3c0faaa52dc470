import type { Frame, Page } from 'playwright-core'

/** Returns the stage of a player: the frame in the document of the player, whose address is `data:`. */
export function stageOf(page: Page): Frame | undefined {
  return page.frames().find(frame => frame.url().startsWith('data:'))
}

/** Returns the text of the first paragraph of the recorded page, which is in a frame of the stage. */
export async function pictureText(page: Page): Promise<string | undefined> {
  const text = "document.querySelector('iframe')?.contentDocument?.querySelector('p')?.textContent ?? undefined"
  return await stageOf(page)
    ?.evaluate<string | undefined>(text)
    .catch(() => undefined)
}
