#!/usr/bin/env node
// The command `penstock`. Node runs the TypeScript sources as they are.
await import('./main.ts')
