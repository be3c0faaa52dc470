{{- define "penstock.name" -}}
{{- if contains "penstock" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-penstock" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "penstock.image" -}}
{{- $repository := .Values.image.repository }}
{{- if .Values.imageRegistry }}
{{- $parts := splitList "/" $repository }}
{{- $first := first $parts }}
{{- if and (gt (len $parts) 1) (or (contains "." $first) (contains ":" $first) (eq $first "localhost")) }}{{ $repository = rest $parts | join "/" }}{{ end }}
{{- $repository = printf "%s/%s" (trimSuffix "/" .Values.imageRegistry) $repository }}
{{- end }}
{{- if .Values.image.digest }}{{ $repository }}@{{ .Values.image.digest }}{{ else }}{{ $repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* Labels that select the pods of a component. A dict of root and component. */}}
{{- define "penstock.selector" -}}
app.kubernetes.io/name: penstock
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "penstock.labels" -}}
{{ include "penstock.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{/* Refuses settings that no process has, queues without a pool, and queues with two. */}}
{{- define "penstock.check" -}}
{{- $known := .Files.Get "settings.json" | fromJson }}
{{- $all := dict }}
{{- range $names := $known.settings }}{{ range $names }}{{ $_ := set $all . true }}{{ end }}{{ end }}
{{- range $name, $_ := .Values.settings }}{{ if not (hasKey $all $name) }}{{ fail (printf "settings.%s: no process has this setting (deploy/env.example lists them)" $name) }}{{ end }}{{ end }}
{{- range concat .Values.secrets.required .Values.secrets.optional }}{{ if not (hasKey $all .) }}{{ fail (printf "secrets: no process has the setting %s" .) }}{{ end }}{{ end }}
{{- $own := dict "edge" .Values.edge.settings "workers" .Values.workers.settings "api" .Values.api.settings "migrate" .Values.migrate.settings }}
{{- range $process, $settings := $own }}
{{- range $name, $_ := $settings }}{{ if not (has $name (index $known.settings $process)) }}{{ fail (printf "%s.settings.%s: %s does not have this setting" $process $name $process) }}{{ end }}{{ end }}
{{- end }}
{{- $pools := dict }}
{{- range $pool, $options := .Values.workers.pools }}
{{- range $name, $_ := $options.settings }}{{ if not (has $name $known.settings.workers) }}{{ fail (printf "workers.pools.%s.settings.%s: workers do not have this setting" $pool $name) }}{{ end }}{{ end }}
{{- range $options.queues }}
{{- if not (has . $known.queues) }}{{ fail (printf "workers.pools.%s: there is no queue %s" $pool .) }}{{ end }}
{{- if hasKey $pools . }}{{ fail (printf "workers.pools: the queue %s is in two pools, %s and %s" . (index $pools .) $pool) }}{{ end }}
{{- $_ := set $pools . $pool }}
{{- end }}
{{- end }}
{{- range $known.queues }}{{ if not (hasKey $pools .) }}{{ fail (printf "workers.pools: the queue %s needs a pool" .) }}{{ end }}{{ end }}
{{- if not .Values.secrets.existingSecret }}{{ fail "secrets.existingSecret: name the Secret with the settings that are secret" }}{{ end }}
{{- end }}

{{/* Refuses addresses in settings whose ports the network policies do not open. Those in Secrets cannot be seen here. */}}
{{- define "penstock.checkPorts" -}}
{{- $values := .Values }}
{{- $stores := dict "CLICKHOUSE_URL" "clickhouse" "S3_ENDPOINT" "objectStore" "AUTH_JWKS_URL" "identityProvider" "WORKLOAD_JWKS_URL" "identityProvider" }}
{{- range $settings := list $values.settings $values.edge.settings $values.workers.settings $values.api.settings $values.migrate.settings }}
{{- range $name, $store := $stores }}
{{- range (get $settings $name | default "" | toString | replace "|" "," | splitList "," | compact) }}
{{- $url := urlParse . }}
{{- $port := regexFind "[0-9]+$" (regexFind ":[0-9]+$" $url.host) | default (ternary "443" "80" (eq $url.scheme "https")) | int }}
{{- $ports := list }}
{{- range (index $values.networkPolicies $store).ports }}{{ $ports = append $ports (int .) }}{{ end }}
{{- if not (has $port $ports) }}{{ fail (printf "%s: add the port %d to networkPolicies.%s.ports" $name $port $store) }}{{ end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* A value as text in quotes. Numbers of YAML are floats to Helm, which writes large ones with an exponent. */}}
{{- define "penstock.text" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) }}{{ . | int64 | toString | quote }}{{ else }}{{ . | toString | quote }}{{ end }}
{{- end }}

{{/* Environment of a process: a dict of root, process, settings (a list of maps, of which later ones win), shutdownSeconds
and drainSeconds. */}}
{{- define "penstock.env" -}}
{{- $root := .root }}
{{- $known := index (.root.Files.Get "settings.json" | fromJson).settings .process }}
{{- $merged := dict }}
{{- range .settings }}{{ range $name, $value := . }}{{ if has $name $known }}{{ $_ := set $merged $name $value }}{{ end }}{{ end }}{{ end }}
- { name: BIND_HOST, value: "0.0.0.0" }
- { name: ADMIN_BIND_HOST, value: "0.0.0.0" }
{{- if .shutdownSeconds }}
- { name: SHUTDOWN_DEADLINE_MS, value: "{{ mul (int .shutdownSeconds) 1000 }}" }
{{- end }}
{{- if .drainSeconds }}
- { name: DRAIN_DELAY_MS, value: "{{ mul (int .drainSeconds) 1000 }}" }
{{- end }}
{{- range $name, $value := $merged }}
- { name: {{ $name }}, value: {{ include "penstock.text" $value }} }
{{- end }}
{{- $secrets := .root.Values.secrets }}
{{- range $name := concat $secrets.required $secrets.optional }}
{{- if and (has $name $known) (not (hasKey $merged $name)) }}
{{- $from := index $secrets.from $name | default dict }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef:
      name: {{ $from.name | default $secrets.existingSecret }}
      key: {{ $from.key | default $name }}
      optional: {{ has $name $secrets.optional }}
{{- end }}
{{- end }}
{{- with $root.Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* What every pod has besides its containers: a dict of root and component. */}}
{{- define "penstock.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: {{ .root.Values.runAsUser }}
  runAsGroup: {{ .root.Values.runAsUser }}
  fsGroup: {{ .root.Values.runAsUser }}
  seccompProfile: { type: RuntimeDefault }
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .root.Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if and .root.Values.topologySpread.enabled (ne .component "migrate") }}
topologySpreadConstraints:
  {{- range .root.Values.topologySpread.topologyKeys }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: {{ $.root.Values.topologySpread.whenUnsatisfiable }}
    labelSelector:
      matchLabels:
        {{- include "penstock.selector" $ | nindent 8 }}
    matchLabelKeys: [pod-template-hash]
  {{- end }}
{{- end }}
volumes:
  # The root of the file system is read-only.
  - name: tmp
    emptyDir: { sizeLimit: 64Mi }
  {{- with .root.Values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* What every container has besides its command, environment and probes. */}}
{{- define "penstock.container" -}}
image: {{ include "penstock.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
volumeMounts:
  - { name: tmp, mountPath: /tmp }
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* Probes on the admin port. A process that is starting has a minute, also with a tenth of a core. */}}
{{- define "penstock.probes" -}}
startupProbe:
  httpGet: { path: /livez, port: admin }
  periodSeconds: 1
  timeoutSeconds: 2
  failureThreshold: 90
livenessProbe:
  httpGet: { path: /livez, port: admin }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: { path: /readyz, port: admin }
  periodSeconds: 3
  timeoutSeconds: 3
  failureThreshold: 2
{{- end }}

{{- define "penstock.podLabels" -}}
{{ include "penstock.labels" . }}
{{- with .root.Values.podLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}
