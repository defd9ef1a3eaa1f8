{{- define "millrace.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "millrace.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains (include "millrace.name" .) .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "millrace.name" .) | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "millrace.selector" -}}
app.kubernetes.io/name: {{ include "millrace.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "millrace.labels" -}}
{{ include "millrace.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{- define "millrace.image" -}}
{{- $repository := required "set image.repository to where the image was pushed" .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" $repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* The settings file. The values of the chart come last, because the chart relies on them. */}}
{{- define "millrace.settings" -}}
{{- $own := dict
  "amqp-url" (required "set broker.amqpURL to the URL of the broker, without a password" .Values.broker.amqpURL)
  "amqp-password-file" "/etc/millrace/secret/amqp-password"
  "session-key-file" "/etc/millrace/secret/session-key"
  "state-dir" "/var/lib/millrace"
  "http-addr" "0.0.0.0:15680"
  "auth" .Values.http.auth
  "log-format" "json" -}}
{{- with .Values.broker.managementURL }}{{ $_ := set $own "management-url" . }}{{ end -}}
{{- with .Values.broker.streamURL }}{{ $_ := set $own "stream-url" . }}{{ end -}}
{{- with .Values.http.prefix }}{{ $_ := set $own "http-prefix" . }}{{ end -}}
{{- $hosts := .Values.http.hosts -}}
{{- if .Values.ingress.enabled }}{{ $hosts = append $hosts .Values.ingress.host | uniq }}{{ end -}}
{{- if $hosts }}{{ $_ := set $own "http-hosts" (join "," $hosts) }}{{ end -}}
{{- if .Values.http.tlsSecret -}}
{{- $_ := set $own "tls-cert" "/etc/millrace/tls/tls.crt" -}}
{{- $_ := set $own "tls-key" "/etc/millrace/tls/tls.key" -}}
{{- else -}}
{{- $_ := set $own "behind-proxy" true -}}
{{- end -}}
{{- if eq .Values.http.auth "token" -}}
{{- $_ := set $own "tokens-file" "/etc/millrace/tokens/tokens" -}}
{{- end -}}
{{- if .Values.metrics.enabled }}{{ $_ := set $own "metrics-addr" (printf "0.0.0.0:%v" .Values.metrics.port) }}{{ end -}}
{{- range $name, $value := .Values.settings -}}
{{- if hasKey $own $name }}{{ fail (printf "settings.%s: the chart sets %s itself" $name $name) }}{{ end -}}
{{- end -}}
{{- toYaml (merge $own .Values.settings) -}}
{{- end -}}
