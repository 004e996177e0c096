// Without --upstream the doctor shows which ways of reporting are set up on this machine.
// `diagnose` asks the server; this file puts its findings into words or JSON. The path loses a
// final `/v1`, because the questions are asked beside the API. The process is looked for on this
// machine, so the result depends on where the command runs. Without an answer the command still
// prints JSON, or the check of Codex's hooks, which needs no server. The limits of clients are the
// proxy's own table.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>

#include "cli/agent_survey.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/key_file.h"
#include "cli/tool_limit_survey.h"
#include "ingest/codex_trust.h"
#include "proxy/connection/client_limits.h"
#include "proxy/server/diagnosis.h"
#include "terminal/output.h"
#include "terminal/phrases.h"
#include "terminal/table.h"
#include "text/json_writer.h"
#include "watchdog/terminal_text.h"

namespace watchdog::monitor {
namespace {

struct DoctorOptions {
  std::string upstream;            ///< URL of a model's server.
  std::filesystem::path key_file;  ///< Its first line is the key to show; empty: none.
  std::filesystem::path ca_file;
  bool json = false;
};

/// The questions are asked beside the API, not within it.
Result<Url> upstream_from(const std::string& text) {
  auto url = url_from(text);
  if (url && url->path.ends_with("/v1")) url->path.resize(url->path.size() - 3);
  return url;
}

int misuse_of_doctor(const Error& error) {
  warn(error.message);
  return exit_usage;
}

std::string_view asked_in_words(Asked asked) {
  switch (asked) {
    case Asked::answered:
      return "on";
    case Asked::unsupported:
      return "off";
    case Asked::waiting:
      return "no answer";
    case Asked::refused:
      return "refused";
    case Asked::unasked:
      break;
  }
  return "not asked";
}

/// As people write it.
std::string name_in_words(const std::string& kind) {
  if (kind == name_of(ServerKind::llama_cpp)) return "llama.cpp";
  if (kind == name_of(ServerKind::ollama)) return "Ollama";
  if (kind == name_of(ServerKind::vllm)) return "vLLM";
  if (kind == "sglang") return "SGLang";
  return "unknown server";
}

std::string slots_in_words(const Diagnosis& of) {
  std::string text(asked_in_words(of.slots));
  if (of.slots == Asked::answered || of.slots_total > 0) {
    text = std::to_string(of.slots_total);
    text += of.slots == Asked::answered ? ", " + std::to_string(of.slots_busy) + " at work"
                                        : ", " + std::string(asked_in_words(of.slots));
  }
  return text;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + terminal_line(name);
  return text.empty() ? "–" : text;
}

void print_diagnosis(const Url& server, const Diagnosis& of) {
  print_line(name_in_words(of.kind) + (of.version.empty() ? "" : " " + terminal_line(of.version)) +
             " at " + server.text());
  print_fact("state", of.is_loading    ? "loads its model"
                      : of.is_sleeping ? "sleeps: the model is unloaded"
                                       : "reachable");
  print_fact("models", joined(of.models));
  print_fact("slots", slots_in_words(of));
  print_fact("context", of.context ? std::to_string(*of.context) + " tokens" : "–");
  print_fact("prompt progress",
             std::string(of.shows_prompt_progress ? "yes: " : "no: ") + of.progress_why);
  print_fact("metrics", std::string(asked_in_words(of.metrics)));
  print_fact("process", of.process ? terminal_line(of.process->name) + " (" +
                                         std::to_string(of.process->pid) + ") on this machine"
                        : of.is_local ? "not to be seen"
                                      : "on another machine");
}

void print_limits() {
  Table table({"CLIENT", "LIMIT", "DEFAULT", "THROUGH THE PROXY", "SETTING"});
  for (const auto& limit : client_limits()) {
    table.add({std::string(limit.client), std::string(limit.name),
               std::to_string(limit.usual.count() / 1'000) + " s", std::string(defused_by(limit)),
               std::string(limit.setting)});
  }
  print(table.text(terminal_width()));
}

/// Returns the folder of Codex's files; empty: unknown.
std::filesystem::path codex_home() {
  const auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread
    return value == nullptr ? "" : value;
  };
  if (auto own = variable("CODEX_HOME"); !own.empty()) return own;
  const auto home = variable("HOME");
  return home.empty() ? std::filesystem::path() : std::filesystem::path(home) / ".codex";
}

std::string text_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Nothing: Codex has no hooks of its user here.
std::optional<CodexHooks> codex_hooks_here(const std::filesystem::path& home) {
  std::error_code ignored;
  if (home.empty() || !std::filesystem::is_regular_file(home / "hooks.json", ignored))
    return std::nullopt;
  return codex_hooks(text_of_file(home / "hooks.json"), text_of_file(home / "config.toml"));
}

void print_hooks() {
  const auto home = codex_home();
  const auto hooks = codex_hooks_here(home);
  if (!hooks) return;
  print_line("\nHooks of Codex in " + terminal_line((home / "hooks.json").string()));
  if (!hooks->is_json) return print_line("  the file is no JSON: Codex runs none of its hooks");
  if (hooks->reporting.empty())
    return print_line(
        "  none reports to a monitor; `watchdog-monitor hooks install codex` adds hooks that do");
  print_fact("report here", joined(hooks->reporting));
  if (!hooks->missing.empty()) print_fact("no hook for", joined(hooks->missing));
  print_fact("not trusted", joined(hooks->untrusted));
  if (!hooks->untrusted.empty()) {
    print_line(
        "  Codex runs no hook that is not trusted, and says nothing of it. Start codex in a "
        "terminal "
        "and choose \"Trust all\"; a changed command needs that again.");
  }
}

void write_hooks(JsonWriter& out) {
  const auto hooks = codex_hooks_here(codex_home());
  out.key("codexHooks");
  if (!hooks) {
    out.value(nullptr);
    return;
  }
  out.open_object().field("readable", hooks->is_json);
  const auto list = [&](std::string_view name, const std::vector<std::string>& events) {
    out.key(name).open_array();
    for (const auto& event : events) out.value(event);
    out.close_array();
  };
  list("reporting", hooks->reporting);
  list("missing", hooks->missing);
  list("untrusted", hooks->untrusted);
  out.close_object();
}

/// The ways in that are set up, by agent.
void print_survey() {
  Table table({"AGENT", "PROGRAM", "HOOKS", "TELEMETRY", "PROXY", "TRANSCRIPTS"}, {1, 2, 5});
  bool has_grpc = false;
  for (const auto& agent : survey_agents()) {
    has_grpc |= agent.uses_grpc;
    const auto text = [](const std::string& value, const char* none) {
      return value.empty() ? std::string(none) : terminal_line(value);
    };
    table.add(
        {agent.name, text(agent.program, "not found"),
         agent.hooks == 0 ? "none" : std::to_string(agent.hooks) + " to " + text(agent.server, "?"),
         agent.uses_grpc       ? "gRPC"
         : agent.has_telemetry ? "on"
                               : "off",
         text(agent.base_url, "–"), text(agent.transcripts, "–")});
  }
  print(table.text(terminal_width()));
  if (has_grpc)
    print_line(
        "gRPC: the monitor takes telemetry over HTTP only. Set the protocol to http/json (Codex: "
        "otlp-http), as `watchdog-monitor env AGENT` prints it.");
  print_line(
      "HOOKS: `watchdog-monitor hooks install` adds them. TELEMETRY: `watchdog-monitor env AGENT` "
      "prints "
      "what sets it.");
  print_line(
      "PROXY: the base URL in this shell. TRANSCRIPTS: `watchdog-monitor serve --follow` reads "
      "them.");
}

void write_survey(JsonWriter& out) {
  out.key("agents").open_array();
  for (const auto& agent : survey_agents()) {
    const auto text = [&](std::string_view key, const std::string& value) {
      out.key(key);
      if (value.empty()) {
        out.value(nullptr);
      } else {
        out.value(value);
      }
    };
    out.open_object().field("agent", agent.name);
    text("program", agent.program);
    out.field("hooks", agent.hooks);
    text("hooksServer", agent.server);
    out.field("telemetry", agent.has_telemetry).field("telemetryIsGrpc", agent.uses_grpc);
    text("baseUrl", agent.base_url);
    text("transcripts", agent.transcripts);
    out.close_object();
  }
  out.close_array();
}

int show_setup(bool json) {
  if (json) {
    JsonWriter out;
    out.open_object();
    write_survey(out);
    write_hooks(out);
    write_tool_limits(out);
    out.close_object();
    print_json(out.finish());
    return exit_done;
  }
  print_line("Set up on this machine");
  print_survey();
  print_hooks();
  print_tool_limits();
  return exit_done;
}

std::string as_json(const Url& server, const Diagnosis& of) {
  JsonWriter out;
  out.open_object().field("url", server.text()).field("reachable", of.is_reachable);
  if (!of.is_reachable) out.field("trouble", of.trouble);
  out.field("kind", of.kind).field("version", of.version).key("models").open_array();
  for (const auto& model : of.models) out.value(model);
  out.close_array().field("needsKey", of.needs_key).field("loading", of.is_loading);
  out.field("sleeping", of.is_sleeping).field("context", of.context).key("slots").open_object();
  const auto code = [](Asked asked) {
    return asked == Asked::waiting ? "unanswered" : asked_in_words(asked);
  };
  out.field("asked", code(of.slots)).field("total", of.slots_total);
  out.field("busy", of.slots_busy).field("tellReading", of.shows_reading).close_object();
  out.field("metrics", code(of.metrics)).key("promptProgress").open_object();
  out.field("available", of.shows_prompt_progress).field("why", of.progress_why).close_object();
  out.field("local", of.is_local).key("process");
  if (of.process) {
    out.open_object().field("pid", of.process->pid).field("name", of.process->name).close_object();
  } else {
    out.value(nullptr);
  }
  out.key("clientLimits").open_array();
  for (const auto& limit : client_limits()) {
    out.open_object().field("client", limit.client).field("name", limit.name);
    out.field("counts", name_of(limit.of)).field("defaultMs", limit.usual.count());
    out.field("setting", limit.setting).field("proxy", defused_by(limit)).key("measured");
    if (limit.measured.empty())
      out.value(nullptr);
    else
      out.value(limit.measured);
    out.close_object();
  }
  out.close_array().key("advice").open_array();
  for (const auto& line : advice_for(of)) out.value(line);
  out.close_array();
  write_survey(out);
  write_hooks(out);
  write_tool_limits(out);
  out.close_object();
  return out.finish();
}

}  // namespace

static int doctor(const DoctorOptions& options) {
  if (options.upstream.empty()) return show_setup(options.json);
  const auto server = upstream_from(options.upstream);
  if (!server)
    return misuse_of_doctor({server.error().code, "--upstream: " + server.error().message});
  const auto key = key_from(options.key_file, "key-file");
  if (!key) return misuse_of_doctor(key.error());
  auto questions =
      ServerQuestions::to({.server = *server, .api_key = *key, .ca_file = options.ca_file});
  if (!questions) return misuse_of_doctor(questions.error());
  const auto diagnosis = diagnose(*server, *questions);
  if (options.json) print_json(as_json(*server, diagnosis));
  if (!diagnosis.is_reachable) {
    if (!options.json) {
      print_hooks();
      (void)complain(
          {ErrorCode::unavailable, "no answer from " + server->text() + ": " + diagnosis.trouble});
    }
    return exit_unreachable;
  }
  if (options.json) return exit_done;
  print_diagnosis(*server, diagnosis);
  print_line("\nWhat to change");
  for (const auto& line : advice_for(diagnosis)) print_line("  " + line);
  print_line("\nTime limits of clients");
  print_limits();
  print_line("\nSet up on this machine");
  print_survey();
  print_hooks();
  print_tool_limits();
  return exit_done;
}

void add_doctor(CommandLine& line) {
  const auto options = std::make_shared<DoctorOptions>();
  auto* command = line.app.add_subcommand("doctor",
                                          "Show which agents can report and how; inspect a model "
                                          "server and list time limits of clients");
  command->add_option(
      "--upstream", options->upstream,
      "URL of the model server, with or without /v1 (default: no server is inspected)");
  command->add_option("--key-file", options->key_file,
                      "File whose first line is the server's API key");
  command->add_option("--ca-file", options->ca_file,
                      "Certificates (PEM) to trust besides those of the system");
  command->add_flag("--json", options->json, "Print one JSON object");
  command->callback([&line, options] { line.code = doctor(*options); });
}

}  // namespace watchdog::monitor
