/// \file
/// The layers of the sources: what each folder may include.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

namespace watchdog::test {

using Set = std::set<std::string, std::less<>>;

/// Includes point down: whom each folder of sources may include besides itself.
inline const std::map<std::string, Set, std::less<>> may_include = {
    // plain types, names, time, ids, digests
    {"facts", {}},
    // what is kept of content, and secrets
    {"privacy", {"facts"}},
    // UTF-8, terminals, JSON out, words for numbers
    {"text", {"facts", "privacy"}},
    // evidence of model servers
    {"server", {"facts", "privacy", "text"}},
    // everything that concludes; pure
    {"judge", {"facts", "privacy", "text", "server"}},
    // types to JSON and back
    {"codec", {"facts", "privacy", "text", "server", "judge"}},
    // how likely a run is to finish
    {"predict", {"facts", "privacy", "text", "server", "judge", "codec"}},
    // URLs, a blocking HTTP client
    {"net", {"facts", "privacy", "text"}},
    // files by descriptor, digests, objects
    {"files", {"facts", "privacy"}},
    // supervised programs
    {"process", {"facts", "privacy", "text"}},
    // the SQLite file
    {"store", {"facts", "privacy", "text", "server", "judge", "codec", "files"}},
    // the judge at work on a store
    {"observer",
     {"facts", "privacy", "text", "server", "judge", "codec", "files", "process", "store"}},
    // an agent's side: tracker and C interface
    {"report", {"facts", "privacy", "text", "server", "judge", "codec", "files", "store"}},
    // waiting for a session
    {"wait", {"facts", "privacy", "text", "server", "judge", "codec", "files", "store", "report"}},
    // what tools print, kept and cut
    {"outputs", {"facts", "privacy", "text", "server", "judge", "codec", "files"}},
    // checkpoints and workspaces
    {"workspace", {"facts", "privacy", "text", "files"}},
    // tool calls, turns, deadlines, fences
    {"calls",
     {"facts", "privacy", "text", "server", "judge", "codec", "files", "process", "outputs",
      "workspace"}},
    // asking a model and reading its answer
    {"llm", {"facts", "privacy", "text", "server", "judge", "codec", "net"}},
    // an agent's main loop
    {"loop",
     {"facts", "privacy", "text", "server", "judge", "codec", "files", "process", "outputs",
      "workspace", "net", "store", "report", "llm", "calls"}},
    // settings
    {"config",
     {"facts", "privacy", "text", "server", "judge", "codec", "files", "process", "outputs",
      "workspace", "net", "store", "report", "llm", "calls", "loop"}},
    // the scripted model server of the demo and of tests
    {"support", {}},
    // programs that show the library
    {"examples", {"support"}},
    // what other programs send, as reports
    {"monitor/ingest", {}},
    // transcripts on disk
    {"monitor/follow", {"monitor/ingest"}},
    // agents' own configuration files
    {"monitor/setup", {}},
    // PostgreSQL as the server of a store
    {"monitor/postgres", {}},
    // what /proc shows
    {"monitor/process", {}},
    // a command and its terminal
    {"monitor/wrapper", {"monitor/ingest"}},
    // the store thread, streams of changes, metrics
    {"monitor/core", {"monitor/ingest"}},
    // texts and delivery of alerts
    {"monitor/alerts", {"monitor/ingest", "monitor/core"}},
    // what is known of one session, as files
    {"monitor/bundle", {"monitor/ingest", "monitor/core"}},
    // sessions for a collector of OpenTelemetry
    {"monitor/export", {"monitor/ingest", "monitor/core"}},
    // systemd and liveness pings
    {"monitor/service", {"monitor/ingest", "monitor/core"}},
    // requests and responses, no socket
    {"monitor/api", {"monitor/ingest", "monitor/process", "monitor/core", "monitor/bundle"}},
    // the server
    {"monitor/http",
     {"monitor/ingest", "monitor/process", "monitor/core", "monitor/bundle", "monitor/api"}},
    // which session a request belongs to
    {"monitor/proxy/sessions", {"monitor/ingest", "monitor/process"}},
    // how the model server is
    {"monitor/proxy/server", {"monitor/process"}},
    // bytes between agents and their model server
    {"monitor/proxy/connection",
     {"monitor/ingest", "monitor/process", "monitor/core", "monitor/bundle", "monitor/api",
      "monitor/http", "monitor/proxy/sessions", "monitor/proxy/server"}},
    // tables, phrases, screens
    {"monitor/terminal",
     {"monitor/ingest", "monitor/process", "monitor/core", "monitor/bundle", "monitor/api"}},
    // the Model Context Protocol
    {"monitor/mcp",
     {"monitor/ingest", "monitor/process", "monitor/core", "monitor/bundle", "monitor/api",
      "monitor/terminal"}},
    // the proxy of tool servers: messages and calls, no processes
    {"monitor/mcp/proxy",
     {"monitor/ingest", "monitor/process", "monitor/core", "monitor/bundle", "monitor/api",
      "monitor/terminal", "monitor/mcp"}},
    // the commands
    {"monitor/cli",
     {"monitor/ingest", "monitor/follow", "monitor/setup", "monitor/process", "monitor/wrapper",
      "monitor/core", "monitor/bundle", "monitor/alerts", "monitor/export", "monitor/service",
      "monitor/api", "monitor/http", "monitor/proxy/sessions", "monitor/proxy/server",
      "monitor/proxy/connection", "monitor/terminal", "monitor/mcp", "monitor/mcp/proxy"}},
    // the program
    {"monitor",
     {"monitor/ingest",
      "monitor/follow",
      "monitor/setup",
      "monitor/process",
      "monitor/wrapper",
      "monitor/core",
      "monitor/bundle",
      "monitor/alerts",
      "monitor/export",
      "monitor/service",
      "monitor/api",
      "monitor/http",
      "monitor/proxy/sessions",
      "monitor/proxy/server",
      "monitor/proxy/connection",
      "monitor/terminal",
      "monitor/mcp",
      "monitor/mcp/proxy",
      "monitor/cli",
      "monitor/postgres"}},
};

}  // namespace watchdog::test
