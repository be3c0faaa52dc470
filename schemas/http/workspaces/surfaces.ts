import { z } from 'zod'
import { exactObject } from '../json-object.ts'
import { nextCursorSchema } from '../page.ts'
import { textOf } from '../sessions/session-id.ts'

export const surfaceIdSchema = z.string().regex(/^srf_[0-9a-z]{1,64}$/)

/** POST /v3/surfaces. */
export const createSurfaceSchema = exactObject({ name: textOf(1, 120) }).meta({ id: 'CreateSurfaceRequest' })
export type CreateSurface = z.infer<typeof createSurfaceSchema>

export const listedSurfaceSchema = z
  .strictObject({ id: surfaceIdSchema, name: z.string(), createdAt: z.iso.datetime() })
  .meta({ id: 'Surface', description: 'An application of a workspace: a web site, a server.' })
export type ListedSurface = z.infer<typeof listedSurfaceSchema>

export const surfaceCreatedSchema = z.strictObject({ surface: listedSurfaceSchema })

/** GET /v3/surfaces: the newest first. */
export const surfacesPageSchema = z
  .strictObject({ surfaces: z.array(listedSurfaceSchema), nextCursor: nextCursorSchema })
  .meta({ id: 'SurfacesPage' })
export type SurfacesPage = z.infer<typeof surfacesPageSchema>
