// The script of the pages of the local issuer. The session is kept in the storage of the origin, which no other port of this
// machine can read, and each step proves it in the body of a POST.
const KEY = 'penstock-session'
const main = document.querySelector('main')
const paragraph = main.querySelector('p')

/** Sends a step with the session, and does as the answer says. */
async function take(step, fields) {
  // A link must not be used up where the session cannot be kept.
  const session = localStorage.getItem(KEY) ?? ''
  localStorage.setItem(KEY, session)
  const response = await fetch(`/local-issuer/${step}`, {
    method: 'POST',
    body: new URLSearchParams({ ...fields, session }),
    signal: AbortSignal.timeout(30_000),
  })
  const answer = await response.json()
  if (answer.location === undefined && answer.text === undefined) throw new Error(answer.message ?? 'no answer')
  if (answer.session !== undefined) localStorage.setItem(KEY, answer.session)
  if (answer.location !== undefined) return location.replace(answer.location)
  paragraph.textContent = answer.text
  main.querySelector('#print').hidden = !answer.isRefused
  const allow = main.querySelector('#allow')
  allow.hidden = answer.request === undefined
  allow.onclick = () => attempt('allow', { request: answer.request })
}

/** Returns whether the browser lets no page keep data, or this one no more. */
const isRefused = error => error.name === 'SecurityError' || error.name === 'QuotaExceededError'

function attempt(step, fields) {
  take(step, fields).catch(error => {
    paragraph.textContent = isRefused(error)
      ? 'This browser keeps no data of this page, which the sign-in needs. Allow it, and open the link again.'
      : `The service does not answer as it should (${error.message}). Is it running?`
  })
}

const { step } = main.dataset
if (step === 'end') {
  localStorage.removeItem(KEY)
  main.querySelector('#print').hidden = false
} else if (step !== undefined) {
  attempt(step, Object.fromEntries(new URLSearchParams(location.search)))
}
