import { render } from 'preact'
import { authorizeRequests } from './api/client.ts'
import { App } from './app.tsx'
import { refuseToken, signIn, tokenOfPage } from './auth/sign-in.ts'
import { followKeys } from './state/keys.ts'
import { followLinks } from './state/router.ts'
import { applyTheme } from './state/theme.ts'

applyTheme()
authorizeRequests({ token: tokenOfPage, refused: refuseToken })
followLinks()
followKeys()
const root = document.getElementById('console')
if (root) render(<App />, root)
void signIn()
