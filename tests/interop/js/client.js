// SPDX-License-Identifier: Apache-2.0
"use strict";

// Calls its targets with grpc-js without end, and prints which backend answered, as JSON lines. It ends with its standard input.

const grpc = require("@grpc/grpc-js");

require("@grpc/grpc-js-xds").register();

const targets = process.argv.slice(2);
// The pause between two calls of all targets together, in milliseconds.
const CALL_EVERY = Number(process.env.INTEROP_CALL_EVERY || 10);
const CALL_TIMEOUT = 20_000;

// The request of grpc.health.v1.Health/Check is the empty message, and nobody reads the answer.
const bytes = (message) => message;
const method = {
    path: "/grpc.health.v1.Health/Check",
    requestStream: false,
    responseStream: false,
    requestSerialize: bytes,
    requestDeserialize: bytes,
    responseSerialize: bytes,
    responseDeserialize: bytes,
};
const Health = grpc.makeGenericClientConstructor({ check: method }, "Health");

function callForEver(target) {
    const client = new Health(target, grpc.credentials.createInsecure());
    let started = false;
    const next = () => {
        // Waiting for the first configuration is not a failure; later nothing may have to wait.
        const metadata = new grpc.Metadata({ waitForReady: !started });
        let backend = "";
        const call = client.check(Buffer.alloc(0), metadata, { deadline: Date.now() + CALL_TIMEOUT }, (error) => {
            started ||= !error;
            console.log(JSON.stringify(error ? { target, error: error.message } : { target, backend }));
            setTimeout(next, CALL_EVERY * targets.length);
        });
        call.on("metadata", (headers) => {
            backend = headers.get("backend").join(",");
        });
    };
    next();
}

targets.forEach(callForEver);
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
