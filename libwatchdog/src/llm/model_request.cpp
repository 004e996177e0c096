// Reduces a model request to digests: of the setup, of the opening, and of each message. It
// skips what clients change without meaning. The newest messages, after the agent's latest
// words, are kept as text.
#include "llm/model_request.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "codec/fields.h"
#include "facts/digest.h"
#include "llm/cut_json.h"
#include "llm/members.h"
#include "text/json_writer.h"
#include "text/utf8.h"

namespace watchdog {
namespace {

using nlohmann::json;
using Who = MessageMark::Who;

/// A conversation of some thousand messages has as many; each may take 160 bytes.
constexpr std::size_t request_values_max = 400'000;
/// An event may have as much.
constexpr std::size_t content_bytes_max = 1U << 20U;
constexpr std::size_t client_name_bytes_max = 1'024;
/// As many calls as an answer may have.
constexpr std::size_t request_calls_max = 1'000;

/// Ends of paths that request an answer, with any prefix; those of Ollama stream unless the request
/// says otherwise.
struct Endpoint {
  std::string_view path;
  bool streams;
};
constexpr Endpoint endpoints[] = {
    // OpenAI, and servers with the same API
    {"/chat/completions", false},
    {"/completions", false},
    {"/responses", false},
    // Anthropic
    {"/v1/messages", false},
    // Ollama
    {"/api/chat", true},
    {"/api/generate", true},
    // llama.cpp
    {"/completion", false},
    // Gemini
    {":generateContent", false},
    {":streamGenerateContent", true},
};

/// How known agents begin the prompts of their helpers: those name conversations, sum them up, or
/// look at single words of them. Prompts as opencode 1.18 and Claude Code 2 send them.
constexpr std::string_view helper_prompts[] = {
    "You are a title generator.",                            // opencode
    "Summarize what was done in this conversation",          // opencode
    "Generate a concise, sentence-case title",               // Claude Code
    "Analyze if this message indicates a new conversation",  // Claude Code
    "Summarize this coding conversation in under",           // Claude Code
    "Extract any file paths that this command reads",        // Claude Code
    "Your task is to process Bash commands that an AI",      // Claude Code
    "You will generate a short title based on the first",    // Crush
};

/// Questions of known agents in place of a person, with tools that must not be used.
constexpr std::string_view helper_questions[] = {
    "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.",  // Claude Code: for a summary
    "Please create a detailed summary of the conversation so far. The history is being",  // Copilot
};

std::string short_text(const json& object, std::string_view name) {
  return std::string(text_member(object, name).substr(0, client_name_bytes_max));
}

void cut_content(std::string& content) {
  if (content.size() <= content_bytes_max) return;
  content.resize(content_bytes_max);
  drop_half_character(content);
}

/// One message, or part of one, as it is being read.
struct Heard {
  Who who = Who::other;
  std::uint64_t digest = 0;
  std::string text;
  std::vector<ToolRequest> calls;
  std::vector<ToolAnswer> results;

  void add(std::uint64_t piece) { digest = combined(digest, piece); }
  void add_text(std::string_view piece) {
    add(digest_of(piece));
    say(piece);
  }
  void say(std::string_view piece) {
    if (!text.empty() && !piece.empty()) text += '\n';
    text.append(piece);
  }
  void add_call(std::string_view id, std::string_view name, const json* arguments) {
    ToolRequest call{.id = std::string(id.substr(0, client_name_bytes_max)),
                     .name = std::string(name.substr(0, client_name_bytes_max)),
                     .arguments = {}};
    if (arguments != nullptr) call.arguments = text_or_json(*arguments);
    add(combined(digest_of(id), combined(digest_of(name), digest_of(call.arguments))));
    calls.push_back(std::move(call));
  }
  void add_result(ToolAnswer result) {
    add(combined(digest_of(result.call_id), digest_of(result.content)));
    cut_content(result.content);
    results.push_back(std::move(result));
  }
};

/// Returns a word for a picture or similar, which distinguishes it from others.
std::string part_shown(const json& part) {
  const auto type = text_member(part, "type");
  return "[" + std::string(type.empty() ? "part" : type.substr(0, 32)) + " " +
         hexadecimal(digest_of(text_or_json(part))) + "]";
}

/// A text, or parts of which some are texts.
std::string content_of(const json* content) {
  if (content == nullptr) return {};
  if (content->is_string()) return content->get<std::string>();
  if (!content->is_array()) return text_or_json(*content);
  std::string all;
  for (const json& part : *content) {
    if (!all.empty()) all += '\n';
    const auto text = text_member(part, "text");
    all += part.is_string() ? part.get<std::string>()
           : text.empty()   ? part_shown(part)
                            : std::string(text);
  }
  return all;
}

void read_part(Heard& heard, const json& part) {
  const auto type = text_member(part, "type");
  if (part.is_string()) {
    heard.add_text(part.get_ref<const std::string&>());
  } else if (type == "tool_result") {  // Anthropic
    const json* failed = member(part, "is_error");
    heard.add_result(
        {.call_id = short_text(part, "tool_use_id"),
         .name = {},
         .content = content_of(member(part, "content")),
         .is_error = failed != nullptr && failed->is_boolean() && failed->get<bool>()});
  } else if (type == "tool_use") {
    heard.add_call(text_member(part, "id"), text_member(part, "name"), member(part, "input"));
  } else if (const json* text = member(part, "text"); text != nullptr && text->is_string()) {
    heard.add_text(text->get_ref<const std::string&>());
  } else if (type != "thinking" && type != "redacted_thinking") {
    const auto word = part_shown(part);
    heard.add_text(word);
  }
}

void read_content(Heard& heard, const json* content) {
  if (content == nullptr) return;
  if (content->is_array()) {
    for (const json& part : *content) read_part(heard, part);
  } else {
    read_part(heard, *content);
  }
}

Who who_is(std::string_view role) {
  if (role == "assistant" || role == "model") return Who::agent;
  if (role == "system" || role == "developer") return Who::system;
  if (role == "tool" || role == "function" || role == "ipython") return Who::tool;
  return Who::other;
}

/// A message of the chat APIs.
Heard read_message(const json& message) {
  Heard heard{.who = who_is(text_member(message, "role"))};
  if (heard.who == Who::tool) {
    auto name = short_text(message, "name");
    if (name.empty()) name = short_text(message, "tool_name");
    heard.add_result({.call_id = short_text(message, "tool_call_id"),
                      .name = std::move(name),
                      .content = content_of(member(message, "content"))});
    return heard;
  }
  read_content(heard, member(message, "content"));
  if (const json* images = array_member(message, "images")) {  // Ollama
    for (const json& image : *images) heard.add_text(part_shown(image));
  }
  if (const json* calls = array_member(message, "tool_calls")) {
    for (const json& call : *calls) {
      const json* function = object_member(call, "function");
      const json& said = function != nullptr ? *function : call;
      heard.add_call(text_member(call, "id"), text_member(said, "name"), member(said, "arguments"));
    }
  }
  if (const json* call = object_member(message, "function_call"))
    heard.add_call({}, text_member(*call, "name"), member(*call, "arguments"));
  return heard;
}

/// An item of the Responses API's input.
Heard read_item(const json& item) {
  const auto type = text_member(item, "type");
  if (type.ends_with("_call_output")) {
    Heard heard{.who = Who::tool};
    heard.add_result({.call_id = short_text(item, "call_id"),
                      .name = {},
                      .content = content_of(member(item, "output"))});
    return heard;
  }
  if (type.ends_with("_call")) {
    Heard heard{.who = Who::agent};
    const json* asked = nullptr;
    for (const char* name : {"arguments", "input", "action"})
      if (asked == nullptr) asked = member(item, name);
    const auto name = text_member(item, "name");
    heard.add_call(text_member(item, "call_id"), name.empty() ? type : name, asked);
    return heard;
  }
  if (type == "reasoning") return {.who = Who::agent};
  return read_message(item);
}

/// A part of Gemini's contents.
void read_gemini_part(Heard& heard, const json& part) {
  const json* thought = member(part, "thought");
  if (thought != nullptr && thought->is_boolean() && thought->get<bool>()) return;
  if (const json* asked = object_member(part, "functionCall")) {
    heard.add_call(text_member(*asked, "id"), text_member(*asked, "name"), member(*asked, "args"));
  } else if (const json* answered = object_member(part, "functionResponse")) {
    ToolAnswer result{.call_id = short_text(*answered, "id"),
                      .name = short_text(*answered, "name")};
    if (const json* response = member(*answered, "response")) {
      const json* error = member(*response, "error");
      const json* output = member(*response, "output");
      result.is_error = error != nullptr;
      if (error == nullptr) error = output != nullptr ? output : response;
      result.content = text_or_json(*error);
    }
    heard.add_result(std::move(result));
  } else {
    read_part(heard, part);
  }
}

/// One of Gemini's contents. Results come from the user there, or from a role of their own.
Heard read_contents(const json& content) {
  Heard heard{.who = who_is(text_member(content, "role"))};
  const json* parts = member(content, "parts");
  if (parts == nullptr) return heard;
  if (!parts->is_array()) {
    read_gemini_part(heard, *parts);
    return heard;
  }
  for (const json& part : *parts) read_gemini_part(heard, part);
  return heard;
}

/// Keeps of each message what is needed.
void keep_messages(ModelRequest& request, std::vector<Heard> all) {
  // The agent's own words at the end are the beginning of what is asked for.
  while (!all.empty() && all.back().who == Who::agent) all.pop_back();
  for (auto& heard : all) {
    heard.add(static_cast<std::uint64_t>(heard.who));
    request.messages.push_back({.who = heard.who, .digest = heard.digest});
    if (heard.who == Who::agent) request.newest = request.messages.size();
  }
  auto spoke = request.newest;  // where the agent began to
  while (spoke > 0 && all[spoke - 1].who == Who::agent) --spoke;
  for (auto at = spoke; at < request.newest; ++at)
    std::ranges::move(all[at].calls, std::back_inserter(request.calls));
  if (request.calls.size() > request_calls_max) request.calls.resize(request_calls_max);
  auto room = request_calls_max;
  for (auto at = request.newest; at < all.size(); ++at) {
    if (all[at].who == Who::system) all[at].text.clear();
    cut_content(all[at].text);
    auto& results = all[at].results;
    if (results.size() > room) results.resize(room);
    room -= results.size();
    request.unanswered.push_back({.text = std::move(all[at].text), .results = std::move(results)});
  }
}

/// Digest of a text in which every number is the same.
std::uint64_t without_numbers(std::string_view text) {
  std::string folded;
  folded.reserve(text.size());
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit || folded.empty() || folded.back() != '0') folded += digit ? '0' : c;
  }
  return digest_of(folded);
}

/// Anthropic: `user_…_account_…_session_UUID`, or an object as text that has a `session_id`.
std::string session_in(std::string_view user) {
  if (const auto at = user.rfind("_session_"); at != std::string_view::npos)
    return std::string(user.substr(at + 9));
  if (!user.starts_with('{')) return {};
  const auto object = json_from(user);
  return object ? short_text(*object, "session_id") : std::string();
}

void read_names(ConversationNames& names, const json& body) {
  names.cache_key = short_text(body, "prompt_cache_key");
  names.previous_response = short_text(body, "previous_response_id");
  names.user = short_text(body, "user");
  names.conversation = short_text(body, "conversation");
  if (const json* conversation = object_member(body, "conversation"))
    names.conversation = short_text(*conversation, "id");
  if (const json* metadata = object_member(body, "metadata")) {
    names.session = short_text(*metadata, "session_id");
    if (names.session.empty()) names.session = session_in(text_member(*metadata, "user_id"));
  }
}

std::uint64_t names_of_tools(const json& body) {
  const json* tools = array_member(body, "tools");
  std::uint64_t all = 0;
  if (tools == nullptr) return all;
  for (const json& tool : *tools) {
    for (const char* list : {"functionDeclarations", "function_declarations"}) {  // Gemini
      const json* declared = array_member(tool, list);
      if (declared == nullptr) continue;
      for (const json& one : *declared) all = combined(all, digest_of(text_member(one, "name")));
    }
    const json* function = object_member(tool, "function");
    auto name = text_member(function != nullptr ? *function : tool, "name");
    if (name.empty()) name = text_member(tool, "type");
    all = combined(all, digest_of(name));
  }
  return all;
}

/// Gemini: `…/models/MODEL:generateContent`.
std::string model_in(std::string_view path) {
  constexpr std::string_view models = "/models/";
  const auto at = path.rfind(models);
  const auto colon = path.rfind(':');
  if (at == std::string_view::npos || colon == std::string_view::npos || colon < at) return {};
  return std::string(path.substr(at + models.size(), colon - at - models.size()).substr(0, 128));
}

/// A line of the text begins with one of them: Claude Code says first who it is.
bool has_line(std::string_view text, std::span<const std::string_view> begins) {
  return std::ranges::any_of(begins, [&](std::string_view begin) {
    for (auto at = text.find(begin); at != std::string_view::npos; at = text.find(begin, at + 1))
      if (at == 0 || text[at - 1] == '\n') return true;
    return false;
  });
}

std::vector<Heard> messages_in(const json& body) {
  std::vector<Heard> all;
  if (const json* contents = array_member(body, "contents")) {  // Gemini
    for (const char* name : {"systemInstruction", "system_instruction"}) {
      if (const json* prompt = member(body, name)) {
        all.push_back(read_contents(*prompt));
        all.back().who = Who::system;
      }
    }
    for (const json& content : *contents) all.push_back(read_contents(content));
    return all;
  }
  for (const char* name : {"system", "instructions"}) {  // Anthropic and Ollama; Responses
    if (const json* prompt = member(body, name)) {
      all.push_back({.who = Who::system});
      read_content(all.back(), prompt);
    }
  }
  if (const json* messages = array_member(body, "messages")) {
    for (const json& message : *messages) all.push_back(read_message(message));
    return all;
  }
  if (const json* items = array_member(body, "input")) {
    for (const json& item : *items) all.push_back(read_item(item));
    return all;
  }
  for (const char* name : {"input", "prompt"}) {
    const json* prompt = member(body, name);
    if (prompt == nullptr || *prompt == "") continue;
    all.push_back({.who = Who::other});
    read_content(all.back(), prompt);
    break;
  }
  return all;
}

}  // namespace

std::optional<ModelRequest> model_request_from(std::string_view method, std::string_view target,
                                               std::string_view body) {
  auto path = target.substr(0, target.find('?'));
  while (path.ends_with('/')) path.remove_suffix(1);
  const auto* endpoint = std::ranges::find_if(
      endpoints, [&](const Endpoint& row) { return path.ends_with(row.path); });
  if (method != "POST" || endpoint == std::end(endpoints)) return std::nullopt;

  ModelRequest request;
  request.stream = endpoint->streams;
  const auto parsed = parse_json(body, request_values_max);
  if (!parsed || !parsed->is_object()) return request;
  request.readable = true;
  request.model = std::string(text_member(*parsed, "model").substr(0, 128));
  if (const json* stream = member(*parsed, "stream"); stream != nullptr && stream->is_boolean())
    request.stream = stream->get<bool>();
  read_names(request.names, *parsed);

  // Gemini wraps the requests of users who logged in, and has the model in the path otherwise.
  const json* wrapped = object_member(*parsed, "request");
  const json& asked =
      wrapped != nullptr && member(*wrapped, "contents") != nullptr ? *wrapped : *parsed;
  if (request.model.empty()) request.model = model_in(path);
  auto all = messages_in(asked);
  request.setup = names_of_tools(asked);
  request.has_tools = request.setup != 0;
  std::uint64_t system = 0;
  bool addressed = false;
  for (const auto& heard : all) {
    const bool is_system = heard.who == Who::system;
    if (is_system && !addressed) system = combined(system, without_numbers(heard.text));
    request.is_helper |= !request.has_tools && is_system && has_line(heard.text, helper_prompts);
    if (!is_system && !std::exchange(addressed, true))
      request.opening = without_numbers(heard.text);
  }
  request.opening = combined(system, request.opening);
  if (request.setup == 0) request.setup = system;
  if (!all.empty() && all.back().who != Who::agent)
    request.is_helper |= has_line(all.back().text, helper_questions);
  keep_messages(request, std::move(all));
  return request;
}

std::optional<ModelRequest> model_request_from_beginning(std::string_view method,
                                                         std::string_view target,
                                                         std::string_view beginning) {
  auto whole = model_request_from(method, target, closed_json(beginning));
  if (!whole) return whole;
  ModelRequest request;
  request.is_cut = true;
  request.model = std::move(whole->model);
  request.stream = whole->stream;
  request.names = std::move(whole->names);
  const bool is_opened = std::ranges::any_of(
      whole->messages, [](const MessageMark& mark) { return mark.who != Who::system; });
  if (is_opened) request.opening = whole->opening;
  return request;
}

}  // namespace watchdog
