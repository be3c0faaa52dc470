{{/* Options of a component's pods as JSON: a dict of layers, of which later ones win. Maps are merged, lists are joined. */}}
{{- define "penstock.options" -}}
{{- $options := dict }}
{{- range $key := list "podAnnotations" "podLabels" "nodeSelector" "affinity" "podSecurityContext" "topologySpread" }}
{{- $merged := dict }}
{{- range $layer := $.layers }}{{ $merged = mergeOverwrite $merged (get $layer $key | default dict | deepCopy) }}{{ end }}
{{- $_ := set $options $key $merged }}
{{- end }}
{{- range $key := list "tolerations" "extraEnv" "envFrom" "extraVolumes" "extraVolumeMounts" "initContainers" "sidecars" }}
{{- $joined := list }}
{{- range $layer := $.layers }}{{ $joined = concat $joined (get $layer $key | default list) }}{{ end }}
{{- $_ := set $options $key ($joined | default list) }}
{{- end }}
{{- range $layer := $.layers }}{{ with get $layer "priorityClassName" }}{{ $_ := set $options "priorityClassName" . }}{{ end }}{{ end }}
{{- toJson $options }}
{{- end }}

{{/* Labels and annotations of a pod: a dict of root, component, options and process, whose Secrets have a checksum. */}}
{{- define "penstock.podMetadata" -}}
labels:
  {{- include "penstock.labels" . | nindent 2 }}
  {{- if eq (.process | default "") "workers" }}
  penstock/process: workers
  {{- end }}
  {{- with .options.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- $annotations := .options.podAnnotations }}
{{- with .process }}{{ with include "penstock.secretsChecksum" (dict "root" $.root "process" .) }}{{ $annotations = merge (dict "checksum/secrets" .) $annotations }}{{ end }}{{ end }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What every pod has besides its containers: a dict of root, component, options and, for a Job, isJob. */}}
{{- define "penstock.pod" -}}
{{- $values := .root.Values }}
{{- $security := dict "runAsNonRoot" true "seccompProfile" (dict "type" "RuntimeDefault") }}
{{- with $values.runAsUser }}{{ $id := int64 . }}{{ $security = merge $security (dict "runAsUser" $id "runAsGroup" $id "fsGroup" $id) }}{{ end }}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  {{- mergeOverwrite $security (deepCopy .options.podSecurityContext) | toYaml | nindent 2 }}
{{- with $values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .options.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .options.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .options.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- $tolerations := .options.tolerations }}
{{- if not (or .isJob (kindIs "invalid" $values.unreachableSeconds)) }}
{{- range $taint := list "not-ready" "unreachable" }}
{{- $tolerations = append $tolerations (dict "key" (printf "node.kubernetes.io/%s" $taint) "operator" "Exists" "effect" "NoExecute" "tolerationSeconds" (int $values.unreachableSeconds)) }}
{{- end }}
{{- end }}
{{- with $tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if and .options.topologySpread.enabled (not .isJob) }}
topologySpreadConstraints:
  {{- range .options.topologySpread.topologyKeys }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: {{ $.options.topologySpread.whenUnsatisfiable }}
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
  {{- with .options.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .options.initContainers }}
initContainers:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What every container has besides its command, environment and probes: a dict of root and options. */}}
{{- define "penstock.container" -}}
image: {{ include "penstock.image" .root }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- with .options.envFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
  - { name: tmp, mountPath: /tmp }
  {{- with .options.extraVolumeMounts }}
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
