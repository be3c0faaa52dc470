/**
 * Kinds of credentials (docs/api/credentials.md#credentials). `schemas/openapi/build-document.ts` describes how each one is sent.
 */
export type Credential =
  | 'publicKeyHeader'
  | 'publicKeyQuery'
  | 'secretKey'
  | 'workspaceKey'
  | 'sessionToken'
  | 'workloadIdentity'

/** Credentials of operations that accept telemetry. */
export const PUBLIC_KEY: readonly Credential[] = ['publicKeyHeader', 'publicKeyQuery']
/** Credentials of operations that a build calls. */
export const SECRET_KEY: readonly Credential[] = ['secretKey']
/** Credentials of operations that read. Each needs a permission, which an API key has as a scope. */
export const READER: readonly Credential[] = ['sessionToken', 'workloadIdentity', 'workspaceKey']
/** Credentials of operations that change what a workspace has. */
export const MANAGER: readonly Credential[] = ['sessionToken', 'workspaceKey']
/** Credentials of operations that manage workspace keys: a signed-in user only. */
export const USER: readonly Credential[] = ['sessionToken']
