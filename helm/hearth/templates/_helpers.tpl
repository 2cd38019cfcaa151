{{- define "hearth.fullname" -}}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if contains $name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}
{{- end }}

{{- define "hearth.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: server
{{- end }}

{{- define "hearth.labels" -}}
{{ include "hearth.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: hearth
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "hearth.image" -}}
{{- $repository := required "image.repository: name the server's image (helm/image/build or its Dockerfile makes it)" .Values.image.repository }}
{{- if .Values.image.digest }}{{ printf "%s@%s" $repository .Values.image.digest }}
{{- else }}{{ printf "%s:%s" $repository (default .Chart.AppVersion .Values.image.tag) }}{{ end }}
{{- end }}

{{- define "hearth.tokensSecret" -}}
{{ default (printf "%s-tokens" (include "hearth.fullname" .)) .Values.tokens.existingSecret }}
{{- end }}

{{- define "hearth.keysSecret" -}}
{{ default (printf "%s-keys" (include "hearth.fullname" .)) .Values.keys.existingSecret }}
{{- end }}

{{- define "hearth.scheme" -}}
{{ if .Values.tls.existingSecret }}https{{ else }}http{{ end }}
{{- end }}
