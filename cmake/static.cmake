# watchdog-monitor-static and watchdog-exec are what the tarball and the image carry: programs that need no file of the
# system but certificates. The target links the objects of watchdog-monitor once more, so it compiles nothing.
#
# Why glibc: Debian has no C++ library for musl. Since 2.34 glibc contains the resolvers of files and DNS, so a static
# program resolves names without loading a library. Other sources of names (LDAP, mDNS) need the dynamic program.
find_library(WATCHDOG_STATIC_C NAMES libc.a)
foreach(name ssl crypto re2 sqlite3 z)
  find_library(WATCHDOG_STATIC_${name} NAMES lib${name}.a)
  list(APPEND static_libraries ${WATCHDOG_STATIC_${name}})
endforeach()
if(NOT WATCHDOG_STATIC_C OR static_libraries MATCHES "NOTFOUND")
  message(STATUS "watchdog-monitor-static is left out: a static library is missing (${static_libraries})")
  return()
endif()

# Debian's libcurl and libpq need libraries that have no static form, so this program cannot send e-mail or use
# PostgreSQL, and says so.
foreach(target ${WATCHDOG_STATIC_PARTS} watchdog-monitor)
  list(APPEND static_objects $<FILTER:$<TARGET_OBJECTS:${target}>,EXCLUDE,/alerts/mail[.]cpp>)
endforeach()
add_executable(watchdog-monitor-static EXCLUDE_FROM_ALL ${static_objects} alerts/mail_unavailable.cpp postgres/unavailable.cpp)
target_include_directories(watchdog-monitor-static PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/libwatchdog/include
                           ${PROJECT_SOURCE_DIR}/libwatchdog/src)
target_link_options(watchdog-monitor-static PRIVATE -static-pie LINKER:--gc-sections,--no-undefined)
# Places that hold addresses in a tenth of the bytes: 0.8 MB less.
include(CheckLinkerFlag)
check_linker_flag(CXX LINKER:-z,pack-relative-relocs WATCHDOG_PACKS_RELOCATIONS)
if(WATCHDOG_PACKS_RELOCATIONS)
  target_link_options(watchdog-monitor-static PRIVATE LINKER:-z,pack-relative-relocs)
endif()
target_link_libraries(watchdog-monitor-static PRIVATE ${static_libraries} watchdog_build)
set_target_properties(watchdog-monitor-static PROPERTIES LINKER_LANGUAGE CXX
                      RULE_LAUNCH_LINK ${CMAKE_CURRENT_LIST_DIR}/static_link.sh
                      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
