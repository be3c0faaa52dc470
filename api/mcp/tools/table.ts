import type { Tool } from '../tool.ts'
import { getFindingTool, listFindingsTool } from './findings.ts'
import { searchLogsTool } from './logs.ts'
import { pipelineHealthTool } from './pipeline.ts'
import { serviceMapTool } from './services.ts'
import { sessionTimelineTool } from './sessions.ts'
import { getSpansTool, outlineTraceTool, searchTracesTool } from './traces.ts'

/** Every tool. There are at most nine, because each takes room in the context of every agent. */
export const TOOLS: readonly Tool[] = [
  listFindingsTool,
  getFindingTool,
  serviceMapTool,
  searchTracesTool,
  outlineTraceTool,
  getSpansTool,
  searchLogsTool,
  sessionTimelineTool,
  pipelineHealthTool,
]
