import { email } from './email.ts'
import { markdown } from './markdown.ts'
import { pagerDutyEvent } from './pagerduty.ts'
import { plainText } from './plain-text.ts'
import { slackMessage } from './slack.ts'
import { teamsMessage } from './teams.ts'

/** How a message is rendered for each channel. Bodies are objects to send as JSON. */
export const renderers = {
  text: plainText,
  markdown,
  slack: slackMessage,
  teams: teamsMessage,
  pagerduty: pagerDutyEvent,
  email,
} as const
