{{/* Refuses settings that no process has, queues without a pool, and queues with two. */}}
{{- define "penstock.check" -}}
{{- $known := .Files.Get "settings.json" | fromJson }}
{{- $all := dict }}
{{- range $names := $known.settings }}{{ range $names }}{{ $_ := set $all . true }}{{ end }}{{ end }}
{{- range $name, $_ := .Values.settings }}{{ if not (hasKey $all $name) }}{{ fail (printf "settings.%s: no process has this setting (deploy/env.example lists them)" $name) }}{{ end }}{{ end }}
{{- range concat .Values.secrets.required .Values.secrets.optional }}{{ if not (hasKey $all .) }}{{ fail (printf "secrets: no process has the setting %s" .) }}{{ end }}{{ end }}
{{- $own := dict "edge" .Values.edge.settings "workers" .Values.workers.settings "api" .Values.api.settings "migrate" .Values.migrate.settings "toolbox" .Values.toolbox.settings }}
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
{{- range $settings := list $values.settings $values.edge.settings $values.workers.settings $values.api.settings $values.migrate.settings $values.toolbox.settings }}
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
