import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3'
import { freePort } from '../../../deploy/local/ports.ts'
import { answers, type ChildProcess, startChild, untilReady } from '../../../deploy/local/processes/child-process.ts'
import type { S3Access } from '../services/services.ts'

/** Running gateway of Ceph. */
interface Ceph {
  readonly s3: S3Access
  /** Kills every daemon and removes the data. */
  stop(): Promise<void>
}

const run = promisify(execFile)
const STEP_DEADLINE_MS = 30_000
const ATTEMPTS = 4
const LAST_LINES = 100

/**
 * Starts the S3 gateway of Ceph on the smallest possible cluster: one monitor, one store in memory and one gateway, in a
 * new directory. Needs neither root nor a manager daemon.
 */
export async function startCeph(): Promise<Ceph> {
  const dir = await mkdtemp(join(tmpdir(), 'penstock-ceph-'))
  const daemons: ChildProcess[] = []
  const lastLines: string[] = []
  const log = (line: string) => {
    if (lastLines.push(line) > LAST_LINES) lastLines.shift()
  }
  const stop = async () => {
    for (const daemon of daemons.reverse()) await daemon.stop()
    await rm(dir, { recursive: true, force: true, maxRetries: 3 })
  }
  try {
    return { s3: await start(dir, daemons, log), stop }
  } catch (error) {
    await stop()
    throw new Error(`Ceph did not start. Its last lines:\n${lastLines.join('\n')}`, { cause: error })
  }
}

async function start(dir: string, daemons: ChildProcess[], log: (line: string) => void): Promise<S3Access> {
  const access = { region: 'us-east-1', bucket: 'penstock', accessKeyId: 'test-access', secretAccessKey: 'test-secret' }
  const [monitorPort, gatewayPort] = [await freePort(), await freePort()]
  const conf = join(dir, 'ceph.conf')
  const ceph = (command: string, ...args: string[]) =>
    run(command, ['-c', conf, ...args], { timeout: STEP_DEADLINE_MS, killSignal: 'SIGKILL' })
  // A client of Ceph 16 may send before it knows the id of its cluster, and is refused (here in one of 15 starts).
  const askMonitor = async (command: string, ...args: string[]) => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await ceph(command, ...args)
      } catch (error) {
        if (attempt === ATTEMPTS) throw error
      }
    }
  }
  const startDaemon = async (command: string, ...args: string[]) => {
    const daemon = await startChild({
      command: 'sh',
      args: ['-c', END_WITH_PARENT, 'sh', command, '-c', conf, ...args, '-f'],
      askToEnd: stdin => stdin?.end(),
      log,
    })
    daemons.push(daemon)
    return daemon
  }

  const [clusterId, storeId, map] = [randomUUID(), randomUUID(), join(dir, 'monmap')]
  for (const name of ['mon', 'osd', 'rgw']) await mkdir(join(dir, name))
  await writeFile(conf, configuration({ dir, clusterId, monitorPort, gatewayPort }))

  const monitorAddress = `[v1:127.0.0.1:${monitorPort}]`
  await run('monmaptool', ['--create', '--fsid', clusterId, '--addv', 'a', monitorAddress, map])
  await ceph('ceph-mon', '-i', 'a', '--mkfs', '--monmap', map)
  await startDaemon('ceph-mon', '-i', 'a')
  await askMonitor('ceph', '--connect-timeout', '30', 'osd', 'new', storeId)
  await askMonitor('ceph', '--connect-timeout', '30', 'osd', 'crush', 'add', 'osd.0', '1.0', 'root=default')
  await ceph('ceph-osd', '-i', '0', '--mkfs', '--osd-uuid', storeId)
  await startDaemon('ceph-osd', '-i', '0')
  const keys = [`--access-key=${access.accessKeyId}`, `--secret-key=${access.secretAccessKey}`]
  await askMonitor('radosgw-admin', 'user', 'create', '--uid=test', '--display-name=test', ...keys)

  const gateway = await startDaemon('radosgw', '-n', 'client.rgw')
  const endpoint = `http://127.0.0.1:${gatewayPort}`
  await untilReady('the gateway', gateway, () => answers(endpoint), { readyDeadlineMs: STEP_DEADLINE_MS })
  await createBucket({ endpoint, ...access })
  return { endpoint, ...access }
}

/**
 * Runs a daemon in a shell whose stdin is a pipe from this process. When the pipe ends (this process closes it, or was
 * killed) the daemon is killed. The shell waits for both its children, so that none remains as a zombie.
 */
const END_WITH_PARENT = `
exec 3<&0
"$@" </dev/null & daemon=$!
(read -r _ <&3; kill -9 $daemon) & watcher=$!
wait $daemon; status=$?
kill $watcher 2>/dev/null; wait $watcher
exit $status`

/**
 * Returns a configuration without authentication in the cluster, with one copy of everything, few placement groups and
 * no file outside of `dir`. The store is added to the map by hand, because its own request may be refused (see
 * `askMonitor`), which would end it.
 */
function configuration(options: { dir: string; clusterId: string; monitorPort: number; gatewayPort: number }): string {
  const { dir, clusterId, monitorPort, gatewayPort } = options
  return `[global]
fsid = ${clusterId}
mon_host = v1:127.0.0.1:${monitorPort}
public_addr = 127.0.0.1
ms_bind_msgr2 = false
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
run_dir = ${dir}
admin_socket =
pid_file =
log_file =
log_to_file = false
log_to_stderr = true
err_to_stderr = true
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 4
osd_pool_default_pgp_num = 4
osd_pool_default_pg_autoscale_mode = off
osd_crush_chooseleaf_type = 0
mon_allow_pool_size_one = true
mon_max_pg_per_osd = 1000
[mon]
mon_data = ${dir}/mon
mon_cluster_log_to_file = false
mon_data_avail_crit = 1
paxos_propose_interval = 0.05
paxos_min_wait = 0.01
mon_tick_interval = 1
[osd]
osd_data = ${dir}/osd
osd_objectstore = memstore
osd_crush_update_on_start = false
osd_class_update_on_start = false
memstore_device_bytes = 4294967296
osd_class_load_list = *
osd_class_default_list = *
[client]
rgw_data = ${dir}/rgw
rgw_frontends = beast endpoint=127.0.0.1:${gatewayPort} tcp_nodelay=1
`
}

async function createBucket({ endpoint, region, bucket, accessKeyId, secretAccessKey }: S3Access): Promise<void> {
  const client = new S3Client({ endpoint, region, forcePathStyle: true, credentials: { accessKeyId, secretAccessKey } })
  try {
    const abortSignal = AbortSignal.timeout(STEP_DEADLINE_MS)
    await client.send(new CreateBucketCommand({ Bucket: bucket }), { abortSignal })
  } finally {
    client.destroy()
  }
}
