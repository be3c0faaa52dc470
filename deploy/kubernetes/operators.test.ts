import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { load } from 'js-yaml'
import { describe, expect, it } from 'vitest'
import { MIB } from '../../schemas/units.ts'
import { MANIFEST } from '../release/manifest.ts'
import { manifestsOf, named, podOf, variablesOf } from './find-manifests.ts'
import { CHART, findHelm, NO_HELM, render } from './render.ts'
import { requestsOf } from './requests.ts'
import { chartSettings } from './write-settings.ts'

const helm = findHelm()
if (helm === undefined) console.warn(NO_HELM)
const HELM = helm ?? ''

/** Each rendering takes up to a second on a busy machine. */
const TIMEOUT_MS = 60_000
const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8')

describe.runIf(helm !== undefined)('what the chart has for operators', { timeout: TIMEOUT_MS }, () => {
  describe('monitoring', () => {
    const all = ['podMonitors', 'rules', 'dashboards'].map(part => `monitoring.${part}.enabled=true`)
    const kinds = ['PodMonitor', 'PrometheusRule', 'ConfigMap']
    const rules = load(read('../prometheus/penstock.rules.yml'))
    const files = readdirSync(new URL('../grafana/dashboards', import.meta.url))

    it('is installed only where a value names it', () => {
      expect(manifestsOf(HELM).filter(({ kind }) => kinds.includes(kind))).toEqual([])
    })

    it('has the alerts and the dashboards of the checkout, with the labels by which they are found', () => {
      const labels = ['monitoring.rules.labels.release=prometheus', 'monitoring.podMonitors.labels.release=prometheus']
      const manifests = manifestsOf(HELM, [...all, ...labels, 'monitoring.dashboards.annotations.folder=Penstock'])
      const rule = named(manifests, 'PrometheusRule', 'penstock')
      expect(rule.spec).toEqual(rules)
      const monitors = manifests.filter(({ kind }) => kind === 'PodMonitor')
      expect(monitors).toHaveLength(3)
      for (const { metadata } of [rule, ...monitors]) expect(metadata.labels).toMatchObject({ release: 'prometheus' })
      const dashboards = named(manifests, 'ConfigMap', 'penstock-dashboards')
      expect(dashboards.metadata).toMatchObject({
        labels: { grafana_dashboard: '1' },
        annotations: { folder: 'Penstock' },
      })
      const { data } = dashboards as unknown as { data: Record<string, string> }
      expect(Object.keys(data).sort()).toEqual(files.sort())
      for (const file of files) {
        expect(JSON.parse(data[file] ?? ''), file).toEqual(JSON.parse(read(`../grafana/dashboards/${file}`)))
      }
      expect(JSON.stringify(data).length).toBeLessThan(MIB)
    })

    it('links alerts to the runbook at the address of the API', () => {
      const address = 'https://telemetry.example'
      const { spec } = named(
        manifestsOf(HELM, [...all, `settings.PUBLIC_URL=${address}/`]),
        'PrometheusRule',
        'penstock',
      )
      const text = read('../prometheus/penstock.rules.yml').replaceAll('http://127.0.0.1:4300', address)
      expect(spec).toEqual(load(text))
      expect(JSON.stringify(spec)).not.toContain('127.0.0.1')
    })

    it('is in the package of the chart too', () => {
      const folder = mkdtempSync(join(tmpdir(), 'penstock-package-'))
      try {
        execFileSync(HELM, ['package', CHART, '--destination', folder], { stdio: 'pipe' })
        const args = ['secrets.existingSecret=stores', ...all].flatMap(value => ['--set', value])
        const packaged = render(HELM, args, join(folder, `penstock-${MANIFEST.version}.tgz`))
        expect(packaged).toEqual(manifestsOf(HELM, all))
      } finally {
        rmSync(folder, { recursive: true })
      }
    })
  })

  describe('the toolbox', () => {
    /** A value for every setting that is not a secret, at each process that has it. */
    const everySetting = () => {
      const { toolbox } = chartSettings().settings
      const defaults = load(read('penstock/values.yaml')) as { secrets: Record<'required' | 'optional', string[]> }
      const secrets = [...defaults.secrets.required, ...defaults.secrets.optional]
      const settings = Object.fromEntries(toolbox.filter(name => !secrets.includes(name)).map(name => [name, 'x']))
      return { toolbox, secrets, args: ['--set-json', `settings=${JSON.stringify(settings)}`] }
    }

    it('has every setting and every secret that a process has', () => {
      const { toolbox, secrets, args } = everySetting()
      const manifests = manifestsOf(HELM, ['networkPolicies.enabled=false'], args)
      const pod = podOf(manifests, 'toolbox')
      const has = Object.keys(variablesOf(pod))
      expect(toolbox.filter(name => !has.includes(name))).toEqual([])
      for (const { spec } of manifests.filter(({ kind }) => kind === 'Deployment' || kind === 'Job')) {
        const names = Object.keys(variablesOf(spec.template))
        const ofProcess = ['SHUTDOWN_DEADLINE_MS', 'DRAIN_DELAY_MS', 'NODE_OPTIONS']
        expect(names.filter(name => !has.includes(name) && !ofProcess.includes(name))).toEqual([])
      }
      const from = pod.spec.containers[0].env.find(
        ({ name }: { name: string }) => name === 'DIRECTORY_BACKUP_KEY',
      )?.valueFrom
      expect(from.secretKeyRef).toMatchObject({ name: 'stores', key: 'DIRECTORY_BACKUP_KEY' })
      expect(secrets).toContain('KEY_PEPPER')
    })

    it('has the settings that one process alone is given, and its own before them', () => {
      const values = ['workers.settings.DIRECTORY_BACKUP_KEEP=9', 'edge.settings.LOG_LEVEL=warn']
      const manifests = manifestsOf(HELM, [...values, 'toolbox.settings.LOG_LEVEL=info'])
      expect(variablesOf(podOf(manifests, 'toolbox'))).toMatchObject({ DIRECTORY_BACKUP_KEEP: '9', LOG_LEVEL: 'info' })
    })

    it('runs the command of backups by a schedule, with the same environment, and is selected apart from it', () => {
      expect(manifestsOf(HELM).filter(({ kind }) => kind === 'CronJob')).toEqual([])
      const manifests = manifestsOf(HELM, ['backup.schedule=15 3 * * *'])
      const toolbox = podOf(manifests, 'toolbox')
      const { schedule, concurrencyPolicy, jobTemplate } = named(manifests, 'CronJob', 'penstock-backup').spec
      expect({ schedule, concurrencyPolicy }).toEqual({ schedule: '15 3 * * *', concurrencyPolicy: 'Forbid' })
      const { metadata, spec } = jobTemplate.spec.template
      expect(spec.containers[0].env).toEqual(toolbox.spec.containers[0].env)
      const [, ...words] = spec.containers[0].args
      // A copy of the whole installation, and not of the directory alone.
      expect(spec.containers[0].args).toEqual(['penstock', 'backup', 'create'])
      expect(read('../../docs/operate/backup-and-restore.md')).toContain(words.join(' '))
      // `kubectl exec deploy/…-toolbox` must not find a backup that runs.
      expect(metadata.labels['app.kubernetes.io/component']).not.toBe(
        toolbox.metadata.labels['app.kubernetes.io/component'],
      )
    })

    it('is where the installation notes and README.md run commands', () => {
      const notes = read('penstock/templates/NOTES.txt')
      const commands = [...`${notes}${read('README.md')}`.matchAll(/exec deploy\/(.+?) -- penstock/g)]
      expect(commands.length).toBeGreaterThan(1)
      for (const [, deployment = ''] of commands) expect(deployment).toMatch(/-toolbox$/)
      expect(
        manifestsOf(HELM, ['toolbox.enabled=false']).filter(({ metadata }) => metadata.name === 'penstock-toolbox'),
      ).toEqual(
        manifestsOf(HELM).filter(
          ({ kind, metadata }) => kind === 'NetworkPolicy' && metadata.name === 'penstock-toolbox',
        ),
      )
    })
  })

  it.each([
    ['the defaults', [], 'README.md'],
    ['`values-small.yaml`', ['-f', join(CHART, 'values-small.yaml')], 'README.md'],
    ['`values-large.yaml`', ['-f', join(CHART, 'values-large.yaml')], 'README.md'],
  ])('requests what README.md states with %s', (name, args, page) => {
    const { cpus, gib } = requestsOf(manifestsOf(HELM, [], args))
    const row = read(page)
      .split('\n')
      .find(line => line.startsWith(`| ${name} `))
    expect(row).toContain(` ${cpus.toFixed(2)} CPUs, ${gib.toFixed(1)} GiB `)
  })

  it('fits a small installation into two CPUs, with two of each process', () => {
    const manifests = manifestsOf(HELM, [], ['-f', join(CHART, 'values-small.yaml')])
    const { cpus, gib, pods } = requestsOf(manifests)
    expect(cpus).toBeLessThanOrEqual(2)
    expect(pods).toEqual({ edge: 2, 'workers-all': 2, api: 2, toolbox: 1 })
    expect(read('penstock/values-small.yaml')).toContain(`requests ${cpus.toFixed(2)} CPUs and ${gib.toFixed(1)} GiB`)
  })
})

it.skipIf(helm !== undefined)(`(${NO_HELM})`, context => context.skip())
