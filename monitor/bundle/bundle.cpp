// Texts of agents go into a file that people read and send to others. So each text passes the
// redactor again, although the store has redacted it: settings may know more patterns by now, and
// names of files and processes come from elsewhere. In Markdown a text of an agent is one line, so
// it cannot make a heading or a line of its own.
#include "bundle/bundle.h"

#include <algorithm>
#include <array>
#include <ctime>

#include "codec/fields.h"
#include "codec/progress.h"
#include "privacy/content.h"
#include "text/figures.h"
#include "watchdog/terminal_text.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

constexpr std::size_t line_chars_max = 500;  ///< Of an agent's text in `README.md`.
constexpr std::size_t short_id_bytes_max = 48;

// --- Clean texts --------------------------------------------------------------------------------

std::string clean_text(std::string_view text) {
  return terminal_text(redact(text));
}

/// One line of an agent's text.
std::string clean_line(std::string_view text) {
  const auto line = terminal_line(redact(text));
  const auto cut = first_characters(line, line_chars_max);
  return std::string(cut) + (cut.size() < line.size() ? "…" : "");
}

/// A value as a name is a secret in its text, and names of members are an agent's texts, too.
void redact_values(json& value) {
  if (value.is_string()) {
    value = redact(value.get_ref<const std::string&>());
  } else if (value.is_array()) {
    for (auto& item : value) redact_values(item);
  } else if (value.is_object()) {
    json clean = json::object();
    for (auto& [name, item] : value.items()) {
      redact_values(item);
      clean[redact(name)] = std::move(item);
    }
    value = std::move(clean);
  }
}

std::string text_of(const json& value, int indent) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

/// The value as JSON that any terminal can show. Each text is looked at alone, where line ends are
/// line ends, and then with the name of its member before it, which can make a secret of it.
std::string clean_json(json value, int indent) {
  redact_values(value);
  auto text = text_of(value, indent);
  auto cleaner = redact(text);
  return terminal_json(json::accept(cleaner) ? cleaner : text);
}

std::string clean_json(const std::string& text, int indent) {
  auto value = parse_json(text);
  return value ? clean_json(std::move(*value), indent) : std::string("null");
}

// --- Reading the progress document --------------------------------------------------------------

std::string text_in(const json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  if (!object.is_object() || found == object.end()) return {};
  return found->is_string() ? clean_line(found->get_ref<const std::string&>()) : std::string();
}

std::optional<std::int64_t> number_in(const json& object, const char* name) {
  if (!object.is_object() || !object.contains(name) || !object[name].is_number())
    return std::nullopt;
  return object[name].get<std::int64_t>();
}

const json& member(const json& object, const char* name) {
  static const json none;
  return object.is_object() && object.contains(name) ? object[name] : none;
}

std::string utc(std::int64_t wall_ms) {
  const auto seconds = static_cast<std::time_t>(wall_ms / 1'000);
  std::tm parts{};
  std::array<char, 40> text{};
  if (gmtime_r(&seconds, &parts) == nullptr) return "at an unknown time";
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text.data();
}

/// True if this monitor read the session's id in a file that the agent wrote.
bool was_read_in_files(const json& document) {
  const auto& sources = member(document, "sources");
  return sources.is_array() && std::ranges::any_of(sources, [](const json& one) {
           return text_in(one, "source") == "transcript";
         });
}

// --- README.md ----------------------------------------------------------------------------------

/// Appends `- name: text`, unless the text is empty.
void add_fact(std::string& out, std::string_view name, const std::string& text) {
  if (!text.empty()) out.append("- ").append(name).append(": ").append(text).append("\n");
}

void add_verdict(std::string& out, const json& document) {
  out += "\n## Verdict\n\n";
  auto state = text_in(document, "state");
  if (const auto since = number_in(document, "stateSince")) state += ", since " + utc(*since);
  add_fact(out, "state", state);
  add_fact(out, "reason", text_in(document, "reason"));
  add_fact(out, "lifecycle", text_in(document, "lifecycle"));
  add_fact(out, "health", text_in(document, "health"));
  add_fact(out, "repetition", text_in(document, "stuckBy"));
  add_fact(out, "waits for", text_in(document, "waitingFor"));
  const auto& outcome = member(document, "outcome");
  auto end = text_in(outcome, "kind");
  if (const auto at = number_in(outcome, "at")) end += ", " + utc(*at);
  for (const auto* name : {"reason", "error"})
    if (const auto text = text_in(outcome, name); !text.empty()) end += ", " + text;
  add_fact(out, "outcome", end);
  const auto& cancel = member(document, "cancel");
  if (cancel.is_object())
    add_fact(out, "cancelled by", text_in(cancel, "by") + ": " + text_in(cancel, "reason"));
  const auto& because = member(document, "explainedBy");
  if (because.is_object())
    add_fact(out, "because of the child",
             text_in(because, "sessionId") + ": " + text_in(because, "reason"));
  const auto& proof = member(document, "evidence");
  for (const auto& one : proof.is_array() ? proof : json::array())
    add_fact(
        out, "proof",
        "event " + std::to_string(number_in(one, "seq").value_or(0)) + ", " + text_in(one, "note"));
  out += "\n`explain.json` has each change of health with the events that prove it.\n";
}

void add_session(std::string& out, const json& document) {
  out += "\n## Session\n\n";
  add_fact(out, "id", text_in(document, "sessionId"));
  add_fact(out, "title", text_in(document, "title"));
  add_fact(out, "agent", text_in(document, "agent"));
  add_fact(out, "folder", text_in(member(document, "labels"), "cwd"));
  add_fact(out, "model", text_in(member(document, "labels"), "model"));
  add_fact(out, "parent", text_in(document, "parentSessionId"));
  add_fact(out, "phase", text_in(document, "currentPhase"));
  add_fact(out, "last message", text_in(document, "lastMessage"));
}

void add_calls(std::string& out, const json& document) {
  out += "\n## Open calls\n\n";
  const auto& calls = member(document, "tools");
  if (!calls.is_array() || calls.empty()) out += "No call of a tool is open.\n";
  for (const auto& call : calls.is_array() ? calls : json::array()) {
    auto text =
        text_in(call, "name") + " for " + span_of(Millis{number_in(call, "elapsedMs").value_or(0)});
    if (const auto command = text_in(call, "command"); !command.empty())
      text += ", runs " + command;
    add_fact(out, "call", text);
    add_fact(out, "its newest output", text_in(call, "message"));
  }
}

void add_resume(std::string& out, const BundleFacts& facts, const json& document) {
  out += "\n## How to resume\n\n";
  const auto command = resume_command(facts.document);
  if (!command) {
    out += was_read_in_files(document)
               ? "No command is known that continues a session of this agent by its id.\n"
               : "No command is offered: the monitor has not read this session's id in a file that "
                 "the agent wrote.\n";
    return;
  }
  const auto folder = text_in(member(document, "labels"), "cwd");
  out +=
      folder.empty() ? "In the session's folder, run:\n" : "In the folder " + folder + ", run:\n";
  out += "\n    " + *command + "\n\nFirst make sure that the agent's earlier process has ended.\n";
}

constexpr std::string_view server_file = "server.txt";

std::string look_file(const KeptLook& look) {
  return "at-" + file_name_of(look.moment, short_id_bytes_max) + ".txt";
}

std::string readme(const BundleFacts& facts, std::size_t events) {
  const auto parsed = parse_json(facts.document);
  const auto document = parsed ? *parsed : json();
  std::string out = "# Evidence of a session\n\nMade by watchdog-monitor " +
                    clean_line(facts.version) + ", " + utc(facts.at.time_since_epoch().count()) +
                    ".\n";
  add_verdict(out, document);
  add_session(out, document);
  add_calls(out, document);
  add_resume(out, facts, document);
  out +=
      "\n## Files\n\n- `session.json`: the progress document\n"
      "- `explain.json`: the newest changes of health, each with its proof\n"
      "- `events.jsonl`: the newest events, one JSON object per line: " +
      std::to_string(events) + (facts.has_earlier_events ? ", and earlier ones exist" : "") +
      "\n- `processes.txt`: the agent's processes, without their arguments\n"
      "- `git.txt`: which files changed in the session's folder, without their contents\n" +
      (facts.kept.text.empty() ? std::string()
                               : "- `" + look_file(facts.kept) +
                                     "`: both as they were when the session got into trouble\n") +
      (facts.server.text.empty()
           ? std::string()
           : "- `" + std::string(server_file) +
                 "`: what the program of `recovery.diagnose` printed of the model server when it "
                 "hung\n") +
      "\n## Before you send it\n\nSecrets of well-known shapes are replaced by `[redacted]`. "
      "Other private things remain: prompts, commands, answers, names of files. Read the files "
      "first.\n";
  return out;
}

// --- The other files ----------------------------------------------------------------------------

/// The newest events within the bounds, the oldest first.
std::vector<std::string> bounded_events(const std::vector<std::string>& events) {
  std::vector<std::string> kept;
  std::size_t bytes = 0;
  for (auto at = events.rbegin(); at != events.rend() && kept.size() < bundle_events_max; ++at) {
    auto line = clean_json(*at, -1) + "\n";
    bytes += line.size();
    if (bytes > bundle_events_bytes_max) break;
    kept.push_back(std::move(line));
  }
  std::ranges::reverse(kept);
  return kept;
}

/// How deep a process is below the first one.
int depth_of(const ProcessTree& tree, const ProcessSample& process) {
  int depth = 0;
  auto parent = process.parent;
  for (; parent != tree.root.pid && depth < ProcessTree::levels_max; ++depth) {
    const auto above = std::ranges::find(tree.children, parent, &ProcessSample::pid);
    if (above == tree.children.end()) break;
    parent = above->parent;
  }
  return depth + 1;
}

std::string process_line(const ProcessSample& process, int depth) {
  std::string line(static_cast<std::size_t>(2 * depth), ' ');
  line += std::to_string(process.pid) + "  " + clean_line(process.command) + "  state " +
          process.state + ", " + counted_as(process.threads, "thread") + ", CPU time " +
          span_of(process.cpu);
  if (!process.wchan.empty()) line += ", waits in " + clean_line(process.wchan);
  return line + "\n";
}

std::string processes_text(const BundleFacts& facts) {
  if (!facts.processes) return "No process is shown: " + clean_line(facts.processes_missing) + "\n";
  const auto& tree = *facts.processes;
  std::string out =
      "The agent's processes when this was made. Arguments are left out, because they may hold "
      "secrets.\n\n" +
      process_line(tree.root, 0);
  for (const auto& child : tree.children) out += process_line(child, depth_of(tree, child));
  if (tree.children.size() == ProcessTree::children_max) out += "There may be more.\n";
  return out;
}

std::string git_text(const GitLook& git) {
  if (!git.missing.empty()) return "Git was not asked: " + clean_line(git.missing) + "\n";
  const auto or_none = [](const std::string& text) {
    return text.empty() ? std::string("nothing\n") : clean_text(text);
  };
  return "commit " + (git.commit.empty() ? "none yet" : clean_line(git.commit)) + "\nbranch " +
         (git.branch.empty() ? "none" : clean_line(git.branch)) + "\n\ngit status --porcelain\n" +
         or_none(git.status) + "\ngit diff --stat HEAD\n" + or_none(git.stat);
}

}  // namespace

std::optional<std::string> resume_command(const std::string& document_text) {
  const auto parsed = parse_json(document_text);
  if (!parsed || !was_read_in_files(*parsed) || !member(*parsed, "parentSessionId").is_null())
    return std::nullopt;
  const auto id = text_in(*parsed, "sessionId");
  if (short_id(id) == id) return std::nullopt;  // not a UUID, as both agents make them
  const auto agent = text_in(*parsed, "agent");
  if (agent == "claude-code") return "claude --resume " + id;
  if (agent == "codex") return "codex resume " + id;
  return std::nullopt;
}

std::string present_facts_text(const BundleFacts& facts, std::string_view moment) {
  if (!facts.processes && !facts.git.missing.empty()) return {};
  return std::string(moment) + ", " + utc(facts.at.time_since_epoch().count()) + "\n\n" +
         processes_text(facts) + "\n" + git_text(facts.git);
}

std::string server_look_text(const ServerLook& look) {
  std::string head = "The model server " + look.server + " hung, " +
                     utc(look.at.time_since_epoch().count()) + "\nprocess " +
                     std::to_string(look.pid) + " (" + look.process + ")\ncommand";
  for (const auto& word : look.command) head += " " + word;
  return clean_text(head + "\nThe command " + look.end + ". It printed:\n\n" +
                    (look.printed.empty() ? "nothing\n" : look.printed));
}

void add_looks(BundleFacts& facts, const KeptLooks& looks) {
  facts.kept = looks.look(facts.session);
  facts.server = looks.look(facts.session, LookOf::server);
}

std::vector<NamedFile> bundle_files(const BundleFacts& facts) {
  const auto kept = bounded_events(facts.events);
  auto shown = facts;
  shown.has_earlier_events |= kept.size() < facts.events.size();
  std::string lines;
  for (const auto& line : kept) lines += line;
  std::vector<NamedFile> files{{"README.md", readme(shown, kept.size())},
                               {"session.json", clean_json(facts.document, 2) + "\n"},
                               {"explain.json", clean_json(facts.explanation, 2) + "\n"},
                               {"events.jsonl", std::move(lines)},
                               {"processes.txt", processes_text(facts)},
                               {"git.txt", git_text(facts.git)}};
  if (!facts.kept.text.empty())
    files.push_back({look_file(facts.kept), clean_text(facts.kept.text)});
  if (!facts.server.text.empty())
    files.push_back({std::string(server_file), clean_text(facts.server.text)});
  return files;
}

std::string bundle_archive(const BundleFacts& facts) {
  return tar_of("watchdog-" + file_name_of(short_id(facts.session), short_id_bytes_max),
                bundle_files(facts), facts.at);
}

std::string bundle_file_name(std::string_view folder, std::string_view session) {
  const auto name = folder.empty() ? std::string() : file_name_of(folder, folder_name_max) + "-";
  return "watchdog-" + name + file_name_of(short_id(session), short_id_bytes_max) + ".tar";
}

}  // namespace watchdog::monitor
