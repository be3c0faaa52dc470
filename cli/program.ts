import { type Command, CommanderError } from 'commander'
import { ConfigError } from '../shared/runtime/config.ts'
import { describeError } from '../shared/runtime/errors.ts'
import type {
  BackupCommandContext,
  BundleCommandContext,
  CommandOutput,
  DemoCommandContext,
  DirectoryCommandContext,
  DoctorCommandContext,
  InstallationBackupContext,
  QueuesCommandContext,
  ReadCommandContext,
  StoresCommandContext,
  UploadCommandContext,
} from './command-context.ts'
import { addAlerts } from './commands/alerts.ts'
import { addAudit } from './commands/audit.ts'
import { addBackup } from './commands/backup.ts'
import { addDeadLetters } from './commands/dead-letters/dead-letters.ts'
import { addDemo } from './commands/demo.ts'
import { addDebugBundle } from './commands/diagnosis/debug-bundle.ts'
import { addReceipt } from './commands/diagnosis/receipt.ts'
import { addWatermarks } from './commands/diagnosis/watermarks.ts'
import {
  addDirectoryBackup,
  addDirectoryBackups,
  addDirectoryExport,
  addDirectoryImport,
  addDirectoryRestore,
} from './commands/directory.ts'
import { addDoctor } from './commands/doctor.ts'
import { addDropping } from './commands/dropping.ts'
import { addErasures } from './commands/erasures.ts'
import { addFinding } from './commands/finding.ts'
import { addKeys } from './commands/key/key.ts'
import { addLogin, addLogout } from './commands/login.ts'
import { addLogs } from './commands/logs.ts'
import { addMembers } from './commands/member.ts'
import { addQueues } from './commands/queues/queues.ts'
import { addFindings, addPipeline, addTrace } from './commands/reads.ts'
import { addReceiptSecretRotation } from './commands/receipt-secret.ts'
import { addReleases } from './commands/release.ts'
import { addRetention } from './commands/retention.ts'
import { addScrubbing } from './commands/scrubbing.ts'
import { addSessionsDelete } from './commands/sessions.ts'
import { addSourcemapsUpload } from './commands/sourcemaps.ts'
import { addSurfaces } from './commands/surface.ts'
import { addToken } from './commands/token.ts'
import { addUsers } from './commands/user.ts'
import { addWorkspaces } from './commands/workspace.ts'
import { EXIT } from './exit-codes.ts'

/** Dependencies of all commands together. */
export interface ProgramContext
  extends StoresCommandContext,
    QueuesCommandContext,
    BundleCommandContext,
    DoctorCommandContext,
    DirectoryCommandContext,
    BackupCommandContext,
    InstallationBackupContext,
    ReadCommandContext,
    UploadCommandContext,
    DemoCommandContext {}

/** Adds every command to the program. */
export function addCommands(program: Command, context: ProgramContext): void {
  addDirectoryCommands(program, context)
  addDoctor(program, context)
  addAudit(program, context)
  addQueues(program, context)
  addReceipt(program, context)
  addWatermarks(program, context)
  addDebugBundle(program, context)
  addSessionsDelete(program.command('sessions').description('the sessions of a workspace'), context)
  addDeadLetters(program, context)
  addReads(program, context)
  addDemo(program, context)
  addSourcemapsUpload(program.command('sourcemaps').description('the source maps of a release'), context)
}

/** Adds the commands that need only the directory, and those of backups. */
export function addDirectoryCommands(
  program: Command,
  context: DirectoryCommandContext & BackupCommandContext & InstallationBackupContext,
): void {
  addWorkspaces(program, context)
  addUsers(program, context)
  addMembers(program, context)
  addSurfaces(program, context)
  addKeys(program, context)
  addReleases(program, context)
  addRetention(program, context)
  addErasures(program, context)
  addToken(program, context)
  const directory = program.command('directory').description('export, import, backups and the secret of the directory')
  addDirectoryExport(directory, context)
  addDirectoryImport(directory, context)
  addDirectoryBackup(directory, context)
  addDirectoryBackups(directory, context)
  addDirectoryRestore(directory, context)
  addReceiptSecretRotation(directory, context)
  addBackup(program, context)
}

/** Adds the commands that read from the API. */
function addReads(program: Command, context: ReadCommandContext): void {
  addTrace(program, context)
  addFindings(program, context)
  addFinding(program, context)
  addLogs(program, context)
  addPipeline(program, context)
  addScrubbing(program, context)
  addDropping(program, context)
  addAlerts(program, context)
  addLogin(program, context)
  addLogout(program, context)
}

/** Runs the command that the words name. An error becomes one line on stderr and an exit code. */
export async function runProgram(
  program: Command,
  words: readonly string[],
  { exit }: Pick<CommandOutput, 'exit'>,
): Promise<void> {
  try {
    await program.parseAsync(words, { from: 'user' })
  } catch (error) {
    // Commander has already printed its own errors. It also throws after --help, with exit code 0.
    if (error instanceof CommanderError) return exit(error.exitCode === 0 ? EXIT.done : EXIT.usage)
    if (error instanceof ConfigError) return exit(EXIT.usage, error.message)
    exit(EXIT.failed, describeError(error))
  }
}
