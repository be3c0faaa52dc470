{{/* A value as text in quotes. Numbers of YAML are floats to Helm, which writes large ones with an exponent. */}}
{{- define "penstock.text" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) }}{{ . | int64 | toString | quote }}{{ else }}{{ . | toString | quote }}{{ end }}
{{- end }}

{{/* Names of the settings that a process has, as JSON: a dict of root and process. */}}
{{- define "penstock.namesOf" -}}
{{- index (.root.Files.Get "settings.json" | fromJson).settings .process | toJson }}
{{- end }}

{{/* Environment of a process: a dict of root, process, options, settings (a list of maps, of which later ones win),
shutdownSeconds and drainSeconds. */}}
{{- define "penstock.env" -}}
{{- $root := .root }}
{{- $known := include "penstock.namesOf" . | fromJsonArray }}
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
{{- with .options.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* A checksum of the values that a process takes from Secrets, where Helm can read them: a dict of root and process.
Empty with `helm template`, which asks no cluster. */}}
{{- define "penstock.secretsChecksum" -}}
{{- $root := .root }}
{{- $secrets := $root.Values.secrets }}
{{- $known := include "penstock.namesOf" . | fromJsonArray }}
{{- $read := dict }}
{{- $found := "" }}
{{- range $name := concat $secrets.required $secrets.optional }}
{{- if has $name $known }}
{{- $from := index $secrets.from $name | default dict }}
{{- $secret := $from.name | default $secrets.existingSecret }}
{{- if not (hasKey $read $secret) }}{{ $_ := set $read $secret ((lookup "v1" "Secret" $root.Release.Namespace $secret).data | default dict) }}{{ end }}
{{- with get (get $read $secret) ($from.key | default $name) }}{{ $found = printf "%s%s=%s\n" $found $name . }}{{ end }}
{{- end }}
{{- end }}
{{- if $found }}{{ sha256sum $found }}{{ end }}
{{- end }}

{{/* The most workers that a pool may have: a dict of workers and options. */}}
{{- define "penstock.mostWorkers" -}}
{{- $autoscaling := mergeOverwrite (deepCopy .workers.autoscaling) (.options.autoscaling | default dict) }}
{{- if $autoscaling.enabled }}{{ $autoscaling.max }}{{ else if hasKey .options "replicas" }}{{ .options.replicas }}{{ else }}{{ .workers.replicas }}{{ end }}
{{- end }}

{{/* Settings that follow from other values, as JSON. `settings` wins. Four workers of a pool insert four times a second, each
further one once, and up to four times with several partitions (docs/operate/requirements.md). */}}
{{- define "penstock.derived" -}}
{{- $workers := .Values.workers }}
{{- $partitions := coalesce (get .Values.edge.settings "QUEUE_PARTITIONS") (get .Values.settings "QUEUE_PARTITIONS") 1 | int }}
{{- $inserts := 4 }}
{{- range $options := $workers.pools }}
{{- $most := include "penstock.mostWorkers" (dict "workers" $workers "options" $options) | int }}
{{- $inserts = max $inserts (add 4 (mul (sub $most 4) (min 4 $partitions))) }}
{{- end }}
{{- dict "CLICKHOUSE_INSERTS_PER_SECOND" (min 100 $inserts | toString) | toJson }}
{{- end }}

{{/* Options of Node for the API: its own, or a heap of a third of the memory limit, because large answers are outside of it. */}}
{{- define "penstock.apiNodeOptions" -}}
{{- if .nodeOptions }}{{ .nodeOptions }}{{ else }}
{{- $limit := .resources.limits.memory | toString }}
{{- $units := dict "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "k" 1000 "M" 1000000 "G" 1000000000 "" 1 }}
{{- $unit := regexFind "[A-Za-z]*$" $limit }}
{{- if not (hasKey $units $unit) }}{{ fail (printf "api.resources.limits.memory: write %s with Mi or Gi" $limit) }}{{ end }}
{{- $bytes := mulf (trimSuffix $unit $limit | float64) (get $units $unit) }}
{{- printf "--max-old-space-size=%d --max-semi-space-size=4" (divf $bytes 3145728 | floor | int64) }}
{{- end }}
{{- end }}
