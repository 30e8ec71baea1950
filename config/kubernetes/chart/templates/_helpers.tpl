{{/* The name of all objects. */}}
{{- define "distributary.name" -}}
{{- if contains "distributary" .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-distributary" (.Release.Name | trunc 37 | trimSuffix "-") -}}
{{- end -}}
{{- end -}}

{{/* What selects the pods. */}}
{{- define "distributary.selector" -}}
app.kubernetes.io/name: distributary
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "distributary.labels" -}}
{{ include "distributary.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: xds-relay
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "distributary.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "distributary.name" .) "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{- define "distributary.image" -}}
{{- with .Values.image -}}
{{- if not .repository -}}
{{- fail "image.repository is not set: push the image to a registry of yours, and add --set image.repository=REGISTRY/distributary" -}}
{{- end -}}
{{- if .digest -}}{{ .repository }}@{{ .digest }}{{- else -}}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{- end -}}
{{- end -}}
{{- end -}}

{{/* Whether cert-manager gives the relay a certificate. One beside its program has none: it is reached on loopback. */}}
{{- define "distributary.certified" -}}
{{- if and (ne .Values.mode "sidecar") .Values.certificate.issuerRef -}}
{{- required "certificate.issuerRef.name is missing" .Values.certificate.issuerRef.name -}}
{{- end -}}
{{- end -}}

{{/* Whether a pod asks the others for their snapshots. They have no certificates to know each other by, so who may ask is up to the
NetworkPolicy; where the configuration says who reads what, it must also say this. */}}
{{- define "distributary.neighbours" -}}
{{- $given := .Values.config -}}
{{- $own := or $given.admin $given.snapshot $given.rules $given.listeners (include "distributary.certified" .) -}}
{{- if and .Values.snapshot.neighbours .Values.networkPolicy.enabled (eq .Values.mode "deployment") (not $own) -}}
true
{{- end -}}
{{- end -}}

{{/* The relay's own configuration: what was given, and what follows from the other values. */}}
{{- define "distributary.config" -}}
{{- $given := .Values.config -}}
{{- if not $given.upstream -}}
{{- fail "config.upstream is missing: name the control plane, such as --set 'config.upstream.xds_servers[0].server_uri=control-plane.xds.svc:18000'" -}}
{{- end -}}
{{- if and .Values.autoscaling.enabled (ne .Values.mode "deployment") -}}
{{- fail (printf "autoscaling.enabled: only a deployment has a number of relays, and mode is %s" .Values.mode) -}}
{{- end -}}
{{- if and .Values.serviceMonitor.enabled (eq .Values.mode "sidecar") -}}
{{- fail "serviceMonitor.enabled: a sidecar has no Service by which it would be scraped; use a PodMonitor of your own" -}}
{{- end -}}
{{- if and .Values.certificate.issuerRef (eq .Values.mode "sidecar") -}}
{{- fail "certificate.issuerRef: a sidecar is reached on loopback, and is given no certificate" -}}
{{- end -}}
{{- range .Values.extraVolumeMounts -}}
{{- if has .mountPath (list "/etc/distributary-config" "/etc/distributary-certificate" "/var/lib/distributary") -}}
{{- fail (printf "extraVolumeMounts: %s is the chart's own; an upgrade would put one volume in the place of the other" .mountPath) -}}
{{- end -}}
{{- end -}}
{{- $address := ternary "127.0.0.1" "0.0.0.0" (eq .Values.mode "sidecar") -}}
{{- $follows := dict
      "listeners" (list (dict "address" (printf "%s:%v" $address .Values.port)))
      "probes" (dict "address" (printf "0.0.0.0:%v" .Values.probesPort))
      "timers" (dict "drain_announce" (printf "%vs" .Values.drain.announceSeconds) "drain" (printf "%vs" .Values.drain.seconds)) -}}
{{- if include "distributary.certified" . -}}
{{- $tls := dict "certificate" "/etc/distributary-certificate/tls.crt" "private_key" "/etc/distributary-certificate/tls.key" -}}
{{- $_ := set (first $follows.listeners) "tls" $tls -}}
{{- end -}}
{{- if .Values.snapshot.enabled -}}
{{- $_ := set $follows "snapshot" (dict "dir" "/var/lib/distributary") -}}
{{- end -}}
{{- if include "distributary.neighbours" . -}}
{{- $snapshot := $follows.snapshot | default dict -}}
{{- $_ := set $snapshot "from" (list (printf "http://%s-headless:9901" (include "distributary.name" .))) -}}
{{- $_ := set $follows "snapshot" $snapshot -}}
{{- $inside := dict "identities" (list "ip:127.0.0.1" "ip:::1") "allow" (list "read" "change") -}}
{{- $_ := set $follows "admin" (dict "address" "0.0.0.0:9901" "rules" (list $inside (dict "allow" (list "read")))) -}}
{{- end -}}
{{- $config := mergeOverwrite $follows (deepCopy $given) -}}
{{- $ports := list -}}
{{- range $config.listeners -}}{{- $ports = append $ports (splitList ":" .address | last) -}}{{- end -}}
{{- if not (has (toString .Values.port) $ports) -}}
{{- fail (printf "no listener in config.listeners is at port %v, where the Service sends clients; change `port`, or an address" .Values.port) -}}
{{- end -}}
{{- if ne (splitList ":" $config.probes.address | last) (toString .Values.probesPort) -}}
{{- fail (printf "config.probes.address is not at port %v; change `probesPort`" .Values.probesPort) -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{/* The container. As a native sidecar it also has `restartPolicy`. */}}
{{- define "distributary.container" -}}
name: distributary
image: {{ include "distributary.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- if eq .Values.mode "sidecar" }}
restartPolicy: Always
{{- end }}
args: {{ concat (list "serve" "--config" "/etc/distributary-config/relay.yaml" "--log-format" .Values.logFormat) .Values.extraArgs | toJson }}
{{- with .Values.env }}
env:
  {{- toYaml . | nindent 2 }}
{{- end }}
ports:
  - { name: grpc-xds, containerPort: {{ .Values.port }} }
  - { name: http-probes, containerPort: {{ .Values.probesPort }} }
{{- if include "distributary.neighbours" . }}
  - { name: http-admin, containerPort: 9901 }
{{- end }}
{{- if eq .Values.mode "sidecar" }}
# The program begins once the relay is there, even if its control plane is not.
startupProbe:
  httpGet: { path: /live, port: http-probes }
  periodSeconds: 1
{{- end }}
# Ready once a control plane was reached or a snapshot can be served; it stays ready when a control plane is lost later. One probe that
# is late, because the node is busy, sends no client away.
readinessProbe:
  httpGet: { path: /ready, port: http-probes }
  periodSeconds: 2
  failureThreshold: 2
# Not the listener: it also says no while the relay starts and drains, and takes no connections when memory is short.
livenessProbe:
  httpGet: { path: /live, port: http-probes }
  periodSeconds: 10
  timeoutSeconds: 5
lifecycle:
  preStop:
    exec: { command: [/usr/bin/distributary, drain] }
resources:
  {{- toYaml .Values.resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  capabilities: { drop: [ALL] }
  seccompProfile: { type: RuntimeDefault }
volumeMounts:
  - { name: distributary-config, mountPath: /etc/distributary-config, readOnly: true }
  {{- if .Values.snapshot.enabled }}
  - { name: distributary-snapshot, mountPath: /var/lib/distributary }
  {{- end }}
  {{- if include "distributary.certified" . }}
  - { name: distributary-certificate, mountPath: /etc/distributary-certificate, readOnly: true }
  {{- end }}
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- define "distributary.volumes" -}}
- name: distributary-config
  configMap: { name: {{ include "distributary.name" . }} }
{{- if .Values.snapshot.enabled }}
- name: distributary-snapshot
  {{- toYaml .Values.snapshot.volume | nindent 2 }}
{{- end }}
{{- if include "distributary.certified" . }}
- name: distributary-certificate
  secret: { secretName: {{ include "distributary.name" . }}-certificate }
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The pod of a Deployment or DaemonSet. */}}
{{- define "distributary.pod" -}}
metadata:
  labels:
    {{- include "distributary.labels" . | nindent 4 }}
    {{- with .Values.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "distributary.serviceAccount" . }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  # The order to drain, both steps of it, and some time for the last snapshot.
  terminationGracePeriodSeconds: {{ add .Values.drain.announceSeconds .Values.drain.seconds 15 }}
  securityContext:
    runAsNonRoot: true
    fsGroup: 65532
    seccompProfile: { type: RuntimeDefault }
  {{- with .Values.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  containers:
    - {{ include "distributary.container" . | indent 6 | trim }}
  volumes:
    {{- include "distributary.volumes" . | nindent 4 }}
  {{- if eq .Values.mode "deployment" }}
  topologySpreadConstraints:
    {{- if .Values.topologySpreadConstraints }}
    {{- toYaml .Values.topologySpreadConstraints | nindent 4 }}
    {{- else }}
    {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
    - maxSkew: 1
      topologyKey: {{ . }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "distributary.selector" $ | nindent 10 }}
      matchLabelKeys: [pod-template-hash]
    {{- end }}
    {{- end }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  tolerations:
    {{- if .Values.tolerations }}
    {{- toYaml .Values.tolerations | nindent 4 }}
    {{- else if eq .Values.mode "daemonset" }}
    - operator: Exists
    {{- else }}
    {{- range list "not-ready" "unreachable" }}
    - { key: node.kubernetes.io/{{ . }}, operator: Exists, effect: NoExecute, tolerationSeconds: 30 }
    {{- end }}
    {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
