import { Socket } from 'node:net'

/**
 * Entry point of a thread that kills its process when the parent has ended. Stdin is a pipe from the parent that carries
 * nothing, so its end means that the parent is gone, however it died. A thread notices this while a hostile map keeps the
 * main thread busy. Plain JavaScript, because the type stripper would take 30 MB more.
 */
const stdin = new Socket({ fd: 0 })
stdin.on('error', () => {})
stdin.on('close', () => process.kill(process.pid, 'SIGKILL'))
stdin.resume()
