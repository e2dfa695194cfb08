{{- define "noetl.name" -}}
{{- $base := ternary .Release.Name (printf "%s-noetl" .Release.Name) (contains "noetl" .Release.Name) -}}
{{- trunc 40 $base | trimSuffix "-" -}}
{{- end -}}

{{- define "noetl.labels" -}}
app.kubernetes.io/name: noetl
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "noetl.selector" -}}
app.kubernetes.io/name: noetl
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "noetl.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ default (include "noetl.name" .) .Values.serviceAccount.name }}
{{- else -}}
{{ default "default" .Values.serviceAccount.name }}
{{- end -}}
{{- end -}}

{{- define "noetl.serverURL" -}}
http://{{ include "noetl.name" . }}:{{ .Values.service.port }}
{{- end -}}

{{- define "noetl.natsEnv" -}}
- name: NATS_URL
  value: {{ .Values.nats.url | quote }}
{{- with .Values.nats.credentialsSecret }}
{{- if .name }}
- name: NATS_USER
  valueFrom: {secretKeyRef: {name: {{ .name }}, key: {{ .userKey }}}}
- name: NATS_PASSWORD
  valueFrom: {secretKeyRef: {name: {{ .name }}, key: {{ .passwordKey }}}}
{{- end }}
{{- end }}
{{- end -}}

{{- define "noetl.extraEnv" -}}
{{- range $name, $value := . }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end -}}

{{/* Nothing may be written but the volumes, and nothing gained. */}}
{{- define "noetl.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "noetl.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}
