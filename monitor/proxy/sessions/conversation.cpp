// `ask` first finds the thread: by call ids, the continued answer, the first message, or its last
// one. A shorter history with the same setup is that thread, compacted, and so is one that lost all
// of the agent's words. New is what follows the agent's latest words, without what the previous
// request had there too. Only digests are kept, because clients send the whole history each time.
// Calls without ids get ours, and their results are matched by name or in order.
#include "proxy/sessions/conversation.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "codec/json.h"
#include "facts/digest.h"

namespace watchdog::monitor {
namespace {

using Who = MessageMark::Who;

constexpr std::size_t call_name_bytes_max = 64;
/// Shorter histories are too short to have been shortened.
constexpr std::size_t compacted_messages_min = 4;

std::uint64_t first_of(const ModelRequest& request) {
  const auto found = std::ranges::find_if(
      request.messages, [](const MessageMark& mark) { return mark.who != Who::system; });
  return found == request.messages.end() ? 0 : found->digest;
}

/// Returns a digest of the first unanswered messages, without system prompts, because those contain
/// the time.
std::uint64_t newest_of(const ModelRequest& request, std::size_t count) {
  std::uint64_t digest = 0;
  for (auto at = request.newest; at < request.newest + count; ++at)
    if (request.messages[at].who != Who::system)
      digest = combined(digest, request.messages[at].digest);
  return digest;
}

/// True for a text that agents put beside a person's words, such as <environment_context>.
bool is_markup(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  const auto end = text.find_last_not_of(" \t\r\n");
  return begin != text.npos && text[begin] == '<' && text[end] == '>';
}

/// The agent's latest words; the Responses API names the answer instead.
std::uint64_t said_in(const ModelRequest& request) {
  const auto said = request.newest == 0 ? 0 : request.messages[request.newest - 1].digest;
  const auto& previous = request.names.previous_response;
  return previous.empty() ? said : combined(said, digest_of(previous));
}

/// As much of a call's id or name as is kept.
std::string kept(std::string_view name) {
  return std::string(name.substr(0, call_name_bytes_max));
}

}  // namespace

News Conversation::ask(const ModelRequest& request) {
  News news;
  if (!request.readable)  // the results in it are not known
    for (auto& thread : threads_) thread.calls.clear();
  if (request.messages.empty()) return news;
  Thread& thread = thread_of(request, news);
  news.thread = thread.number;

  const auto count = request.messages.size() - request.newest;
  const auto said = said_in(request);
  // Words of the previous request after the same words of the agent are not new.
  const bool goes_on = thread.messages > 0 && !news.compacted && said == thread.said &&
                       request.newest == thread.newest_at && count >= thread.newest_count &&
                       newest_of(request, thread.newest_count) == thread.newest;
  const auto known = goes_on ? thread.newest_count : 0;
  news.repeated = goes_on && known == count;
  news.answered = thread.latest == Answer::whole;
  news.calling = news.answered && thread.asked_calls;
  if (news.repeated && thread.asking > 0) news.repeated = false;  // two at once, on purpose
  news.redirected = news.repeated && thread.latest == Answer::elsewhere;
  if (news.redirected) news.repeated = false;
  add_results(thread, request, known, news);
  // An agent that goes on without a result does not wait for it.
  thread.calls.clear();

  thread.setup = request.setup;
  thread.first = first_of(request);
  thread.last = request.messages.back().digest;
  thread.said = said;
  thread.newest = newest_of(request, count);
  thread.newest_at = request.newest;
  thread.newest_count = count;
  if (thread.messages == 0) thread.begun = request.messages.size();
  thread.messages = request.messages.size();
  thread.latest = Answer::none;
  ++thread.asking;
  return news;
}

Conversation::Thread& Conversation::thread_of(const ModelRequest& request, News& news) {
  auto found = threads_.end();
  for (const auto& message : request.unanswered) {
    for (const auto& result : message.results) {
      if (result.call_id.empty() || found != threads_.end()) continue;
      found = std::ranges::find_if(threads_, [&](const Thread& thread) {
        return std::ranges::find(thread.calls, kept(result.call_id), &Call::id) !=
               thread.calls.end();
      });
    }
  }
  // Claude Code keeps its newest turn behind a summary.
  if (found != threads_.end())
    news.compacted = found->first != first_of(request) && is_shortened(*found, request);
  if (found == threads_.end() && !request.names.previous_response.empty())
    found = threads_.begin();  // only what is new is sent
  if (found == threads_.end()) {
    found = std::ranges::find(threads_, first_of(request), &Thread::first);
    news.compacted = found != threads_.end() && has_lost_answers(*found, request);
  }
  if (found == threads_.end()) {  // its oldest messages were dropped
    found = std::ranges::find_if(threads_, [&](const Thread& thread) {
      return std::ranges::find(request.messages, thread.last, &MessageMark::digest) !=
             request.messages.end();
    });
  }
  if (found == threads_.end()) {
    found = std::ranges::find_if(
        threads_, [&](const Thread& thread) { return is_shortened(thread, request); });
    news.compacted = found != threads_.end();
  }
  if (found == threads_.end()) {
    if (threads_.size() == threads_max) threads_.pop_back();
    threads_.push_front({.number = next_++});
  } else {
    threads_.splice(threads_.begin(), threads_, found);
  }
  return threads_.front();
}

bool Conversation::is_shortened(const Thread& thread, const ModelRequest& request) {
  return thread.setup == request.setup && thread.asking == 0 &&
         thread.messages >= compacted_messages_min && request.messages.size() < thread.messages;
}

/// Codex keeps what a person wrote, and puts a summary in the place of all else. A program that
/// runs again begins as before.
bool Conversation::has_lost_answers(const Thread& thread, const ModelRequest& request) {
  return request.newest == 0 && thread.newest_at > 0 && request.messages.size() > thread.begun &&
         is_shortened(thread, request);
}

void Conversation::add_results(Thread& thread, const ModelRequest& request, std::size_t from,
                               News& news) {
  for (auto at = from; at < request.unanswered.size(); ++at) {
    const auto& message = request.unanswered[at];
    for (ToolAnswer result : message.results) {
      const bool known = close(thread, result);
      const auto asked = std::ranges::find(request.calls, result.call_id, &ToolRequest::id);
      if (!result.call_id.empty() && asked != request.calls.end()) {
        if (result.name.empty()) result.name = asked->name;
        if (!known && thread.latest == Answer::unread) news.calls.push_back(*asked);
      }
      news.results.push_back(std::move(result));
    }
    if (message.text.empty() || news.words.size() + message.text.size() > event_bytes_max) continue;
    // A person's words first: only the beginning may be stored, and the title is made of it.
    const auto between = news.words.empty() ? "" : "\n\n";
    const bool comes_first = !is_markup(message.text) && is_markup(news.words);
    news.words = comes_first ? message.text + between + news.words
                             : std::move(news.words) + between + message.text;
  }
}

/// The call that the result is of is open no longer. APIs without ids answer in order, or by name.
bool Conversation::close(Thread& thread, ToolAnswer& result) {
  auto& calls = thread.calls;
  auto found = calls.end();
  if (!result.call_id.empty()) {
    found = std::ranges::find(calls, kept(result.call_id), &Call::id);
    if (found == calls.end()) {  // Gemini's clients name calls themselves that have no id
      found = std::ranges::find_if(calls, [&](const Call& call) {
        return call.is_ours && !call.name.empty() && call.name == kept(result.name);
      });
      if (found != calls.end()) result.call_id = found->id;
    }
  } else if (!result.name.empty()) {
    found = std::ranges::find(calls, kept(result.name), &Call::name);
  } else {
    found = calls.begin();
  }
  if (found == calls.end()) return false;
  if (result.call_id.empty()) result.call_id = found->id;
  if (result.name.empty()) result.name = found->name;
  calls.erase(found);
  return true;
}

void Conversation::answer(std::uint64_t thread, Answer answer, std::vector<ToolRequest>& calls,
                          const std::string& request_name) {
  std::vector<bool> ours(calls.size());
  for (std::size_t at = 0; at < calls.size(); ++at) {
    ours[at] = calls[at].id.empty();
    if (ours[at]) calls[at].id = request_name + "." + std::to_string(at + 1);
  }
  const auto found = std::ranges::find(threads_, thread, &Thread::number);
  if (found == threads_.end()) return;
  found->asking = std::max(found->asking - 1, 0);
  found->latest = answer;
  found->asked_calls = !calls.empty();
  for (std::size_t at = 0; at < calls.size() && found->calls.size() < calls_max; ++at) {
    found->calls.push_back(
        {.id = kept(calls[at].id), .name = kept(calls[at].name), .is_ours = ours[at]});
  }
}

bool Conversation::has_open_calls(std::uint64_t but_thread) const {
  return std::ranges::any_of(threads_, [&](const Thread& thread) {
    return thread.number != but_thread && !thread.calls.empty();
  });
}

}  // namespace watchdog::monitor
