#!/usr/bin/env node
// The command `penstock`: the sources are TypeScript, which tsx runs.
import { register } from 'tsx/esm/api'

register()
await import('./main.ts')
