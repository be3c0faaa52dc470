import { readServiceMap, type ServiceMap } from '../api/generated/client.ts'
import { useLoad } from '../state/load.ts'
import { addressOf, given, place } from '../state/router.ts'
import { timesOf } from '../state/time-range.ts'
import { TextFilter } from '../ui/filters.tsx'
import { Notice, Shown } from '../ui/states.tsx'
import { Time, Title } from '../ui/text.tsx'
import { CallsTable } from './calls-table.tsx'
import { LABELLED_EDGES, layoutMap, type MapEdge, type MapNode, NODE } from './layout-map.ts'
import { addressOfService, chosenSpans } from './links.ts'
import { formatErrors, formatMs, formatRate } from './rates.tsx'
import { ServiceFilters } from './services-page.tsx'

/** Share of errors from which lines and boxes are red. */
const FAILING_SHARE = 0.01
/** Characters of a name that a node has room for. */
const NAME_CHARACTERS = 18

/** Which service calls which, as a map and as a list. */
export function ServiceMapPage() {
  const { query } = place.value
  const loaded = useLoad(`service map ${query}`, signal =>
    readServiceMap(
      { ...given(query, 'environment', 'surface', 'service'), ...timesOf(query, { isBounded: true }) },
      { signal },
    ),
  )
  const filters = chosenSpans()
  return (
    <>
      <Title text="Service map" />
      <p class="quiet trace-id">
        <a href={addressOf('services', filters)}>Services</a>
        {query.has('service') && (
          <>
            {' · '}
            <a href={addressOf('services-map', filters)}>All services</a>
          </>
        )}
      </p>
      <ServiceFilters>
        <TextFilter name="service" label="Service" placeholder="all services" suggests="service" />
      </ServiceFilters>
      <Shown loaded={loaded} what="the map of services">
        {map => <Shape map={map} />}
      </Shown>
    </>
  )
}

function Shape({ map }: { readonly map: ServiceMap }) {
  const { services, edges, from, to, isCut } = map
  if (services.length === 0 && edges.length === 0) {
    return (
      <Notice
        title="No calls in this time"
        text="Choose a longer time, or clear a filter. Calls are counted two minutes after their spans arrive."
      />
    )
  }
  const seconds = (Date.parse(to) - Date.parse(from)) / 1_000
  return (
    <>
      <p class="quiet">
        Calls that ended from <Time iso={from} exact /> to <Time iso={to} exact />.{' '}
        {isCut && 'Only those with most calls are shown. '}Dashed boxes have sent no spans.
      </p>
      {edges.length > 0 && <Drawing map={map} seconds={seconds} />}
      <Alone map={map} />
      <h2>Calls</h2>
      <CallsTable edges={edges} seconds={seconds} />
    </>
  )
}

/** Names the services that call none, and that none calls. */
function Alone({ map: { services, edges } }: { readonly map: ServiceMap }) {
  const connected = new Set(edges.flatMap(({ caller, callee }) => [caller, callee]))
  const alone = services.filter(({ name }) => !connected.has(name))
  if (alone.length === 0) return null
  return (
    <p class="quiet">
      Without calls in this time:{' '}
      {alone.map(({ name }, i) => (
        <span key={name}>
          {i > 0 && ', '}
          <a href={addressOfService(name)}>{name || '(no name)'}</a>
        </span>
      ))}
    </p>
  )
}

function Drawing({ map, seconds }: { readonly map: ServiceMap; readonly seconds: number }) {
  const { width, height, nodes, edges } = layoutMap(map.edges)
  const rates = new Map(map.services.map(service => [service.name, service]))
  const nameOf = new Map(nodes.map(({ id, name }) => [id, name]))
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is scrolled by keys once it has the focus
    <section class="map" aria-label="Map of services" tabIndex={0}>
      <svg
        width={width}
        height={height}
        viewBox={`0 0 ${width} ${height}`}
        class={edges.length <= LABELLED_EDGES ? 'labelled' : undefined}
      >
        <title>Services and the calls between them. The list below has the same.</title>
        <defs>
          <marker
            id="arrow"
            viewBox="0 0 8 8"
            refX="7"
            refY="4"
            markerWidth="8"
            markerHeight="8"
            markerUnits="userSpaceOnUse"
            orient="auto"
          >
            <path d="M0 0 8 4 0 8z" fill="context-stroke" />
          </marker>
        </defs>
        {edges.map(edge => (
          <Line key={`${edge.from} ${edge.to}`} edge={edge} seconds={seconds} names={nameOf} />
        ))}
        {nodes.map(node => (
          <Box
            key={node.id}
            node={node}
            rates={node.kind === 'service' ? rates.get(node.name) : undefined}
            seconds={seconds}
          />
        ))}
      </svg>
    </section>
  )
}

function Line(props: {
  readonly edge: MapEdge
  readonly seconds: number
  readonly names: ReadonlyMap<string, string>
}) {
  const { points, label, calls, errors, p95Ms, from, to } = props.edge
  const failed = errors > 0 ? `, ${formatErrors({ spans: calls, errors })} errors` : ''
  const text = `${formatRate(calls, props.seconds)}, p95 ${formatMs(p95Ms)}${failed}`
  const d = points.map(({ x, y }, i) => `${i === 0 ? 'M' : 'L'}${x.toFixed(1)} ${y.toFixed(1)}`).join('')
  return (
    <g class={errors >= FAILING_SHARE * calls ? 'edge failing' : 'edge'}>
      <title>{`${props.names.get(from)} to ${props.names.get(to)}: ${text}`}</title>
      <path class="target" d={d} />
      <path class="line" d={d} stroke-width={1 + Math.min(Math.log10(1 + calls), 4)} marker-end="url(#arrow)" />
      <text x={label.x} y={label.y - 4} text-anchor="middle">
        {formatRate(calls, props.seconds)}, {formatMs(p95Ms)}
      </text>
    </g>
  )
}

/** Text of a node without rates. */
const WITHOUT_RATES: Readonly<Record<MapNode['kind'], string>> = {
  service: 'no spans counted',
  database: 'database',
  queue: 'queue',
  host: 'sends no spans',
  unknown: 'no span',
}

function Box(props: {
  readonly node: MapNode
  readonly rates: ServiceMap['services'][number] | undefined
  readonly seconds: number
}) {
  const { name, kind, x, y } = props.node
  const { rates, seconds } = props
  const shown = name.length > NAME_CHARACTERS ? `${name.slice(0, NAME_CHARACTERS - 1)}…` : name
  const isFailing = rates !== undefined && rates.spans > 0 && rates.errors >= FAILING_SHARE * rates.spans
  const [first, second] =
    rates === undefined
      ? [WITHOUT_RATES[kind], '']
      : [`${formatRate(rates.spans, seconds)}, ${formatErrors(rates)} errors`, `p95 ${formatMs(rates.durationMs?.p95)}`]
  const box = (
    <>
      <title>{`${name}: ${first} ${second}`}</title>
      <rect width={NODE.width} height={NODE.height} rx="6" />
      <text x="10" y="19" class="name">
        {shown || '(no name)'}
      </text>
      <text x="10" y="35" class="numbers">
        {first}
      </text>
      <text x="10" y="49" class="numbers">
        {second}
      </text>
    </>
  )
  return (
    <g class={`node ${kind}${isFailing ? ' failing' : ''}`} transform={`translate(${x} ${y})`}>
      {kind === 'service' ? <a href={addressOfService(name)}>{box}</a> : box}
    </g>
  )
}
