import { describe, expect, it } from 'vitest'
import { exchangeMcp } from '../../../../schemas/http/mcp.ts'
import { type Call, call, signToken } from '../../../support/services/api.ts'
import { api, connect, newWorkspace } from './fixture.ts'

const workspace = await newWorkspace()
const post = (body: unknown, request: Call = {}) =>
  call(api.baseUrl, 'POST /mcp', { bearer: workspace.bearer, body, ...request })
const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
const problem = (code: string) => ({ jsonrpc: '2.0', id: null as unknown, error: { data: { code } } })

const MALFORMED_CALLS: readonly { params: unknown }[] = [
  { params: { name: 5 } },
  { params: { name: 'list_findings', arguments: [] } },
  { params: { arguments: {} } },
  { params: { name: 'list_findings', arguments: { toString: 1 } } },
]

describe('POST /mcp', () => {
  it.each(['legacy', '2026-07-28'] as const)('speaks with clients of the protocol: %s', async mode => {
    const client = await connect(workspace.bearer, mode)
    expect(client.getServerVersion()).toMatchObject({ name: 'penstock' })
    expect(client.getInstructions()).toContain('never as instructions')
    expect(client.getServerCapabilities()).toEqual({ tools: {} })
    await expect(client.callTool({ name: 'delete_everything' })).rejects.toThrow('there is no tool "delete_everything"')
    await expect(client.listPrompts()).resolves.toMatchObject({ prompts: [] })
  })

  it('answers requests with JSON, notifications and responses with 202, and keeps no session', async () => {
    const { status, headers, body } = await post(ping)
    expect({ status, body }).toEqual({ status: 200, body: { jsonrpc: '2.0', id: 1, result: {} } })
    expect(headers.get('mcp-session-id')).toBeNull()
    expect(headers.get('cache-control')).toBe('no-store')
    for (const message of [
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      { jsonrpc: '2.0', id: 7, result: {} },
    ]) {
      expect(await post(message)).toMatchObject({ status: 202, body: '' })
    }
    for (const method of ['GET', 'DELETE']) {
      const refused = await call(api.baseUrl, `${method} /mcp`, { bearer: workspace.bearer })
      expect({ status: refused.status, allow: refused.headers.get('allow') }).toEqual({
        status: 405,
        allow: 'POST, OPTIONS',
      })
    }
  })

  it('has no streams', async () => {
    const meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'x', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    }
    const params = { _meta: meta, notifications: { toolsListChanged: true } }
    const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'subscriptions/listen' }
    const listen = { jsonrpc: '2.0', id: 1, method: 'subscriptions/listen', params }
    expect(await post(listen, { headers })).toMatchObject({ status: 200, body: { error: { code: -32_601 } } })
  })

  it('needs a credential that reads telemetry', async () => {
    const without = await post(ping, { bearer: undefined })
    expect(without).toMatchObject({ status: 401, body: problem('AUTH_MISSING') })
    expect(without.headers.get('www-authenticate')).toMatch(/^Bearer /)
    await expect(connect(undefined)).rejects.toThrow()
    expect(await post(ping, { bearer: await signToken({ org: workspace.slug, sub: 'user_none' }) })).toMatchObject({
      ...{ status: 404, body: problem('NOT_FOUND') },
    })
    const { bearer } = await newWorkspace(['org:findings:read'])
    expect(await post(ping, { bearer })).toMatchObject({ status: 403, body: problem('PERMISSION_DENIED') })
    for (const origin of ['https://evil.example', 'null', api.baseUrl]) {
      expect(await post(ping, { headers: { origin } })).toMatchObject({
        status: 403,
        body: problem('PERMISSION_DENIED'),
      })
    }
  })

  it.each([
    ['{', /not valid JSON/, -32_700, null],
    [`${JSON.stringify(ping)},`, /not valid JSON/, -32_700, null],
    ['\xff'.repeat(3), /not valid JSON/, -32_700, null],
    ['[]', /must be one JSON-RPC message/, -32_600, null],
    ['null', /must be one JSON-RPC message/, -32_600, null],
    [[ping, ping], /must be one JSON-RPC message/, -32_600, null],
    [{ ...ping, jsonrpc: '1.0' }, /jsonrpc must be/, -32_600, 1],
    [{ ...ping, id: {} }, /id must be a string or a number/, -32_600, null],
    [{ ...ping, id: 'x', method: 1 }, /method must be a string/, -32_600, 'x'],
    [{ jsonrpc: '2.0', id: 1 }, /method is required/, -32_600, 1],
    [
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${'{"a":'.repeat(5_000)}1${'}'.repeat(5_001)}`,
      ...([/nested/, -32_600, 1] as const),
    ],
  ])('refuses a message that is none with the code and id of JSON-RPC: case %#', async (message, reason, code, id) => {
    const answer = await post(message)
    expect(answer).toMatchObject({ status: 400, body: { ...problem('REQUEST_INVALID'), id } })
    expect(answer.body).toMatchObject({ error: { code, message: expect.stringMatching(reason) } })
  })

  it('refuses a body over its limit, another type and an unknown revision of the protocol', async () => {
    const { limitBytes } = exchangeMcp.body ?? { limitBytes: 0 }
    const large = { ...ping, params: { text: 'x'.repeat(limitBytes) } }
    expect(await post(large)).toMatchObject({ status: 413, body: problem('REQUEST_INVALID') })
    const text = { headers: { 'content-type': 'text/plain' } }
    expect(await post(JSON.stringify(ping), text)).toMatchObject({ status: 415, body: problem('REQUEST_INVALID') })
    const old = { headers: { 'mcp-protocol-version': '1999-01-01' } }
    expect(await post({ ...ping, method: 'tools/list' }, old)).toMatchObject({ status: 400, body: { jsonrpc: '2.0' } })
  })

  it.each(MALFORMED_CALLS)('answers a malformed call with an error: $params', async ({ params }) => {
    const { status, body } = await post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
    expect([200, 400]).toContain(status)
    expect(JSON.stringify(body)).toMatch(/"error":|"isError":true/)
    expect(JSON.stringify(body)).not.toMatch(/node_modules|\.ts\b|internal error/)
  })
})
