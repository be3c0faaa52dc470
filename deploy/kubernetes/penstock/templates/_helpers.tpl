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

{{/* Sends requests to pods in the same zone, which Kubernetes does from 1.31 on. */}}
{{- define "penstock.trafficDistribution" -}}
{{- if and .Values.trafficDistribution (semverCompare ">=1.31.0-0" .Capabilities.KubeVersion.Version) -}}
trafficDistribution: {{ .Values.trafficDistribution }}
{{- end }}
{{- end }}

{{/* The address at which clients reach the API, or nothing. */}}
{{- define "penstock.publicUrl" -}}
{{- $ingress := ternary (printf "https://%s" .Values.ingress.apiHost) "" .Values.ingress.enabled }}
{{- coalesce (get .Values.api.settings "PUBLIC_URL") (get .Values.settings "PUBLIC_URL") $ingress | default "" | trimSuffix "/" }}
{{- end }}
