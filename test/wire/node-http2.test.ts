// The transport on node:http2 against everything that a transport must do.
import { createNodeHttp2Server } from "../../src/wire/node-http2.ts";
import { describeCalls } from "./suite/calls.ts";
import { describeOddCalls } from "./suite/odd-calls.ts";

describeCalls("node:http2", createNodeHttp2Server);
describeOddCalls("node:http2", createNodeHttp2Server);
