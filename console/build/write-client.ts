import { mkdirSync, writeFileSync } from 'node:fs'
import { CLIENT_FILE, clientSource } from './client-source.ts'

/** Writes the client of the API. Run it when an operation changes that the console calls: npm run generate:console */
mkdirSync(new URL('.', CLIENT_FILE), { recursive: true })
writeFileSync(CLIENT_FILE, await clientSource())
