// One function for each tool makes its entry. The schema of a tool's arguments is also what its
// arguments are checked against, so the two cannot differ. The check knows what the schemas here
// use: types, enumerations, bounds and lists of texts.
#include "mcp/tool_table.h"

#include <algorithm>
#include <string>

#include "judge/attention.h"
#include "text/nearest.h"
#include "watchdog/result.h"

namespace watchdog::monitor::mcp {
namespace {

constexpr int text_bytes_max = 4'096;

json text_of_at_most(const std::string& description, int most = 256) {
  return {{"type", "string"}, {"description", description}, {"maxLength", most}};
}
json session_text() {
  return text_of_at_most("Session id, as `agents` lists it", 128);
}
json whole_number(const std::string& description, std::int64_t least, std::int64_t most) {
  return {{"type", "integer"}, {"description", description}, {"minimum", least}, {"maximum", most}};
}
json words_list(const std::string& description, const std::vector<std::string>& words) {
  return {{"type", "array"},
          {"description", description},
          {"items", {{"type", "string"}, {"enum", words}}},
          {"maxItems", 32}};
}
json object_of(json properties, const std::vector<std::string>& required) {
  json schema = {{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty()) schema["required"] = required;
  return schema;
}
json arguments_of(json properties, const std::vector<std::string>& required = {}) {
  auto schema = object_of(std::move(properties), required);
  schema["additionalProperties"] = false;
  return schema;
}
json nullable(const char* type, const std::string& description) {
  return {{"type", {type, "null"}}, {"description", description}};
}
json of_type(const char* type, const std::string& description) {
  return {{"type", type}, {"description", description}};
}
json cut_text() {
  return nullable("string", "The parts that were cut to keep the result short. Null: none");
}
json agent_object() {
  auto schema =
      object_of({{"sessionId", of_type("string", "The session's id")},
                 {"state", of_type("string", "Its state in one word")},
                 {"attention", of_type("string", "needs_you, ready, watch, working or resting")},
                 {"reason", nullable("string", "Why it is in that state")},
                 {"waitingFor", nullable("string", "What it waits for")},
                 {"waitProvider", nullable("string", "Whose limit that is")},
                 {"waitUntil", nullable("string", "When that is expected to end")},
                 {"estimate", nullable("string", "How such sessions went on before")}},
                {"sessionId", "state", "attention"});
  schema["description"] = "The session in short";
  return schema;
}

struct ToolWords {
  const char* name;
  const char* title;
  const char* description;
};
/// Hints for clients that ask people before they call a tool.
struct ToolHints {
  bool reads = true;
  bool destroys = false;
  bool is_idempotent = true;
};

json entry(const ToolWords& words, const ToolHints& hints, json input, json output) {
  return {{"name", words.name},
          {"title", words.title},
          {"description", words.description},
          {"inputSchema", std::move(input)},
          {"outputSchema", std::move(output)},
          {"annotations",
           {{"title", words.title},
            {"readOnlyHint", hints.reads},
            {"destructiveHint", hints.destroys},
            {"idempotentHint", hints.is_idempotent},
            {"openWorldHint", false}}}};
}

json agents_entry() {
  return entry(
      {"agents", "List agents",
       "Lists the sessions of agents that the watchdog knows, those that need a person first: "
       "state, reason, what each is at, what it waits for and until when."},
      {},
      arguments_of({{"attention", words_list("Only these", all_names<Attention>())},
                    {"state", words_list("Only these", all_names<SessionState>())},
                    {"health",
                     words_list("Only running sessions of these healths", all_names<HealthKind>())},
                    {"label", text_of_at_most("Only sessions with this label, as key:value")},
                    {"agent", text_of_at_most("Only sessions of this agent")},
                    {"search", text_of_at_most("Only sessions whose id or title has this text")},
                    {"limit", whole_number("How many at most (default 50)", 1, 200)}}),
      object_of({{"agents", {{"type", "array"}, {"items", agent_object()}}},
                 {"total", nullable("integer", "How many there are in all")},
                 {"cut", cut_text()}},
                {"agents", "total", "cut"}));
}

json agent_entry() {
  return entry(
      {"agent", "Show one agent",
       "Shows one session: its state and why, the evidence, running calls, its budget, and "
       "its newest events."},
      {},
      arguments_of({{"session", session_text()},
                    {"events", whole_number("How many of the newest events (default 20)", 0, 100)}},
                   {"session"}),
      object_of({{"agent", of_type("object", "The progress document")},
                 {"recent", of_type("array", "The newest events, the oldest first")},
                 {"cut", cut_text()}},
                {"agent", "recent", "cut"}));
}

json explain_entry() {
  return entry(
      {"explain", "Explain an agent's health",
       "Lists the changes of a session's health, and the events that prove each."},
      {},
      arguments_of({{"session", session_text()},
                    {"limit", whole_number("How many of the newest changes (default 20)", 1, 200)}},
                   {"session"}),
      object_of({{"agent", agent_object()},
                 {"evidence", of_type("array", "What proves the present state")},
                 {"changes", of_type("array", "Changes of health, the oldest first")},
                 {"earlier", of_type("integer", "How many earlier changes there are")},
                 {"cut", cut_text()}},
                {"agent", "evidence", "changes", "earlier", "cut"}));
}

json bundle_entry() {
  return entry(
      {"bundle", "Get the evidence about an agent",
       "Returns a page about one session for a bug report: the verdict and its proof, open calls, "
       "how to resume. The command in the result saves it with events, processes and changed files "
       "in one archive."},
      {}, arguments_of({{"session", session_text()}}, {"session"}),
      object_of({{"readme", of_type("string", "The page, as Markdown")},
                 {"save", of_type("string", "The command that saves the archive")},
                 {"cut", cut_text()}},
                {"readme", "save", "cut"}));
}

json wait_entry() {
  return entry(
      {"wait", "Wait for an agent",
       "Waits until a session ends or reaches another goal. It does not fail because time passes. "
       "If it returns {\"came\": false, \"continue\": …}, the goal is not reached yet: call it "
       "again as `continue` says. It ends early if the goal cannot be reached any more."},
      {},
      arguments_of(
          {{"session", session_text()},
           {"until", text_of_at_most(
                         "end (default), completed, failed, incomplete, cancelled, "
                         "state=STATE, attention=ATTENTION, health=HEALTH, state-change (it made "
                         "progress) or state-change=TYPE")},
           {"after", whole_number("State changes after this event count; 0: all. As an earlier "
                                  "result gave it (default: from now on)",
                                  0, INT64_MAX)},
           {"seconds", whole_number("Return after this time at the latest, if nothing else keeps "
                                    "the call open (default 50)",
                                    1, 50)}},
          {"session"}),
      object_of(
          {{"session", of_type("string", "The session's id")},
           {"until", of_type("string", "The goal")},
           {"came", of_type("boolean", "Whether the goal is reached")},
           {"end", nullable("string",
                            "Why it cannot be reached any more: ended, dead or stuck. Null: it "
                            "is reached, or it may be later")},
           {"why", of_type("string", "A sentence about it")},
           {"after", of_type("integer", "The newest event that is known")},
           {"continue", nullable("string", "How to go on waiting. Null: it is over")},
           {"agent", {{"type", {"object", "null"}}, {"description", "The session in short"}}},
           {"cut", cut_text()}},
          {"session", "until", "came", "end", "why", "after", "continue", "agent", "cut"}));
}

json report_entry(bool has_session) {
  auto session = session_text();
  if (has_session) session["description"] = "Session id (default: the session of this process)";
  std::vector<std::string> required{"kind"};
  if (!has_session) required.emplace_back("session");
  return entry(
      {"report", "Report about yourself",
       "Reports what you do, so that the watchdog does not take you for stuck. Kinds: progress "
       "(something was achieved), blocked (you wait for somebody), unblocked, and quiet (the next "
       "step takes long). The answer says whether somebody asks you to stop."},
      {.reads = false, .is_idempotent = false},
      arguments_of(
          {{"kind",
            {{"type", "string"},
             {"description", "What you report"},
             {"enum", {"progress", "blocked", "unblocked", "quiet"}}}},
           {"session", session},
           {"text", text_of_at_most("A sentence about it", text_bytes_max)},
           {"type", text_of_at_most("Of progress: the kind of change, for example tests_passed")},
           {"on", text_of_at_most("Of blocked and unblocked: approval, input, login, quota, or a "
                                  "word of your own")},
           {"seconds",
            whole_number("Of blocked: when it is expected to end; of quiet: how long the "
                         "next progress may take",
                         1, 604'800)}},
          required),
      object_of({{"stored", of_type("boolean", "Whether the report is kept")},
                 {"stop", nullable("string", "Somebody asks you to stop, and why. Null: go on")},
                 {"cut", cut_text()}},
                {"stored", "stop", "cut"}));
}

json check_entry() {
  return entry({"check", "Ask a model about an agent",
                "Asks the model that is set up for checks whether a session makes progress. The "
                "answer becomes part of the session."},
               {.reads = false, .is_idempotent = false},
               arguments_of({{"session", session_text()},
                             {"check", text_of_at_most("Id of a check that was pending", 128)}},
                            {"session"}),
               object_of({{"checkId", of_type("string", "The check's id")},
                          {"state", of_type("string", "pending, done, inconclusive, failed …")},
                          {"meaning", nullable("string", "The answer in words")},
                          {"reason", nullable("string", "The model's reason")},
                          {"continue", nullable("string", "How to get a pending answer")},
                          {"cut", cut_text()}},
                         {"checkId", "state", "meaning", "reason", "continue", "cut"}));
}

json cancel_entry() {
  return entry({"cancel", "Stop an agent",
                "Asks an agent to stop its session. The result says how the request reaches it."},
               {.reads = false, .destroys = true},
               arguments_of({{"session", session_text()},
                             {"reason", text_of_at_most("Why; the agent gets it", 2'000)}},
                            {"session"}),
               object_of({{"ended", of_type("boolean", "Whether the session is over already")},
                          {"message", of_type("string", "How the request reaches the agent")},
                          {"cut", cut_text()}},
                         {"ended", "message", "cut"}));
}

json abort_entry() {
  return entry({"abort_call", "Stop a tool call",
                "Asks an agent to stop one of its turns, or one tool call of a turn. The `agent` "
                "tool shows the ids."},
               {.reads = false, .destroys = true},
               arguments_of({{"turn", text_of_at_most("Id of the turn")},
                             {"call", text_of_at_most("Id of the call (default: the whole turn)")},
                             {"reason", text_of_at_most("Why; the agent gets it", 2'000)}},
                            {"turn"}),
               object_of({{"requested", of_type("boolean", "Whether the request is kept")},
                          {"message", of_type("string", "What happens next")},
                          {"cut", cut_text()}},
                         {"requested", "message", "cut"}));
}

std::vector<json> entries(bool has_session) {
  return {agents_entry(), agent_entry(),  explain_entry(),
          bundle_entry(), wait_entry(),   report_entry(has_session),
          check_entry(),  cancel_entry(), abort_entry()};
}

/// Returns what is wrong with a value; empty: nothing.
std::string fault_of(const json& schema, const json& value) {
  const auto type = text_in(schema, "type");
  if (type == "string") {
    if (!value.is_string()) return "must be a text";
    const auto& text = value.get_ref<const std::string&>();
    const auto most = number_in(schema, "maxLength", text_bytes_max);
    if (text.size() > static_cast<std::size_t>(most))
      return "may have at most " + std::to_string(most) + " bytes";
    const auto& words = member(schema, "enum");
    if (words.is_array() && std::ranges::find(words, value) == words.end())
      return "must be one of " + words.dump();
  } else if (type == "integer") {
    if (!value.is_number_integer()) return "must be an integer";
    const auto least = number_in(schema, "minimum");
    const auto most = number_in(schema, "maximum", INT64_MAX);
    const bool is_above =
        value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(most);
    if (is_above || value.get<std::int64_t>() < least || value.get<std::int64_t>() > most)
      return "must be from " + std::to_string(least) + " to " + std::to_string(most);
  } else if (type == "array") {
    if (!value.is_array()) return "must be a list";
    if (value.size() > static_cast<std::size_t>(number_in(schema, "maxItems")))
      return "has too many items";
    for (const auto& item : value)
      if (auto fault = fault_of(member(schema, "items"), item); !fault.empty())
        return "has an item that " + fault;
  }
  return {};
}

}  // namespace

json tool_list(Revision revision, bool has_session) {
  json list = json::array();
  for (auto& tool : entries(has_session)) {
    if (revision == Revision::v2025_11_25 && tool["name"] == "wait")
      tool["execution"] = {{"taskSupport", "optional"}};
    if (revision == Revision::v2025_03_26)
      for (const auto* later : {"title", "outputSchema"}) tool.erase(later);
    list.push_back(std::move(tool));
  }
  return list;
}

json schema_of(std::string_view tool, bool has_session) {
  for (auto& found : entries(has_session))
    if (found["name"] == tool) return std::move(found["inputSchema"]);
  return nullptr;
}

bool permits(const json& access, std::string_view scope) {
  const auto& scopes = member(access, "scopes");
  return !scopes.is_array() || std::ranges::find(scopes, json(scope)) != scopes.end();
}

bool stops_something(std::string_view tool) {
  return tool == "cancel" || tool == "abort_call";
}

bool is_offered(std::string_view tool, const json& access) {
  if (!member(access, "name").is_string()) return true;
  if (stops_something(tool)) return permits(access, "act");
  if (tool == "report") return permits(access, "report");
  return permits(access, "read") && (tool != "check" || permits(access, "report"));
}

std::optional<std::string> misuse_of(const json& schema, const json& arguments) {
  if (!arguments.is_object()) return "the arguments must be an object";
  const auto& properties = member(schema, "properties");
  for (const auto& [name, value] : arguments.items()) {
    const auto& known = member(properties, name.c_str());
    if (known.is_null()) {
      std::vector<std::string> names;
      for (const auto& property : properties.items()) names.push_back(property.key());
      return unknown_word("argument", name, names);
    }
    if (auto fault = fault_of(known, value); !fault.empty()) return name + " " + fault;
  }
  for (const auto& name : member(schema, "required"))
    if (!arguments.contains(name.get_ref<const std::string&>()))
      return name.get<std::string>() + " is missing";
  return std::nullopt;
}

}  // namespace watchdog::monitor::mcp
