#include <cstdio>
#include <fstream>

#include "cli/commands.h"
#include "cli/phrases.h"
#include "cli/table.h"
#include "proxy/client_limits.h"
#include "proxy/diagnosis.h"
#include "watchdog/json_writer.h"

namespace watchdog::monitor {
namespace {

/// The first line of a file; empty where it has none.
Result<std::string> key_in(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string key;
  if (!file.is_open()) return Error{ErrorCode::invalid, "cannot read " + path.string(), "key-file"};
  std::getline(file, key);
  while (key.ends_with('\r') || key.ends_with(' ')) key.pop_back();
  return key;
}

/// The questions are asked beside the API, not within it.
Result<Url> upstream_from(const std::string& text) {
  auto url = url_from(text);
  if (url && url->path.ends_with("/v1")) url->path.resize(url->path.size() - 3);
  return url;
}

int misuse_of_doctor(const Error& error) {
  std::fprintf(stderr, "watchdog-monitor: %s\n", error.message.c_str());
  return exit_usage;
}

std::string_view asked_in_words(Asked asked) {
  switch (asked) {
    case Asked::answered:
      return "on";
    case Asked::unsupported:
      return "off";
    case Asked::waiting:
      return "unanswered";
    case Asked::refused:
      return "refused";
    case Asked::unasked:
      break;
  }
  return "not asked";
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
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + printable(name);
  return text.empty() ? "–" : text;
}

void print_diagnosis(const Url& server, const Diagnosis& of) {
  print_line(of.kind + (of.version.empty() ? "" : " " + printable(of.version)) + " at " +
             server.text());
  print_fact("state", of.is_loading    ? "loads its model"
                      : of.is_sleeping ? "sleeps: the model is unloaded"
                                       : "reachable");
  print_fact("models", joined(of.models));
  print_fact("slots", slots_in_words(of));
  print_fact("context", of.context ? std::to_string(*of.context) + " tokens" : "–");
  print_fact("prompt progress",
             std::string(of.tells_prompt_progress ? "yes: " : "no: ") + of.progress_why);
  print_fact("metrics", std::string(asked_in_words(of.metrics)));
  print_fact("process", of.process ? printable(of.process->name) + " (" +
                                         std::to_string(of.process->pid) + ") on this machine"
                        : of.is_local ? "not to be seen"
                                      : "on another machine");
}

void print_limits() {
  Table table({"CLIENT", "LIMIT", "DEFAULT", "THROUGH THE PROXY", "SETTING"});
  for (const auto& limit : client_limits()) {
    table.add({std::string(limit.client), std::string(limit.name),
               std::to_string(limit.usual.count() / 1'000) + " s",
               std::string(defused_by(limit.of)), std::string(limit.setting)});
  }
  print(table.text(terminal_width()));
}

std::string as_json(const Url& server, const Diagnosis& of) {
  JsonWriter out;
  out.open_object().field("url", server.text()).field("reachable", of.is_reachable);
  if (!of.is_reachable) out.field("trouble", of.trouble);
  out.field("kind", of.kind).field("version", of.version).key("models").open_array();
  for (const auto& model : of.models) out.value(model);
  out.close_array().field("needsKey", of.needs_key).field("loading", of.is_loading);
  out.field("sleeping", of.is_sleeping).field("context", of.context).key("slots").open_object();
  out.field("asked", asked_in_words(of.slots)).field("total", of.slots_total);
  out.field("busy", of.slots_busy).field("tellReading", of.shows_reading).close_object();
  out.field("metrics", asked_in_words(of.metrics)).key("promptProgress").open_object();
  out.field("available", of.tells_prompt_progress).field("why", of.progress_why).close_object();
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
    out.field("setting", limit.setting).field("proxy", defused_by(limit.of)).close_object();
  }
  out.close_array().key("advice").open_array();
  for (const auto& line : advice_for(of)) out.value(line);
  out.close_array().close_object();
  return out.take();
}

}  // namespace

int doctor(const DoctorOptions& options) {
  const auto server = upstream_from(options.upstream);
  if (!server) return misuse_of_doctor(server.error());
  const auto key =
      options.key_file.empty() ? Result<std::string>(std::string()) : key_in(options.key_file);
  if (!key) return misuse_of_doctor(key.error());
  auto questions =
      ServerQuestions::to({.server = *server, .api_key = *key, .ca_file = options.ca_file});
  if (!questions) return misuse_of_doctor(questions.error());
  const auto diagnosis = diagnose(*server, *questions);
  if (options.json) print_line(as_json(*server, diagnosis));
  if (!diagnosis.is_reachable) {
    if (!options.json)
      (void)complain(
          {ErrorCode::unavailable, "no answer from " + server->text() + ": " + diagnosis.trouble});
    return exit_unreachable;
  }
  if (options.json) return exit_done;
  print_diagnosis(*server, diagnosis);
  print_line("\nWhat to change");
  for (const auto& line : advice_for(diagnosis)) print_line("  " + line);
  print_line("\nTime limits of clients");
  print_limits();
  return exit_done;
}

}  // namespace watchdog::monitor
