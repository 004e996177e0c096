# Moves files that CMake installed to where Debian has them, compresses manuals, and adds what every Debian package
# holds. CPack runs this on the files that it is about to pack, one folder per component.
set(share ${CPACK_TEMPORARY_DIRECTORY}/monitor/usr/share)
set(debian ${CPACK_WATCHDOG_SOURCE}/packaging/debian)

function(compress file)
  execute_process(COMMAND gzip -9n ${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# The build's prefix may be another one.
file(GLOB units ${CPACK_TEMPORARY_DIRECTORY}/monitor/usr/lib/systemd/*/*.service)
foreach(unit ${units})
  file(READ ${unit} text)
  string(REGEX REPLACE "ExecStart=[^ ]*/watchdog-monitor" "ExecStart=/usr/bin/watchdog-monitor" text "${text}")
  file(WRITE ${unit} "${text}")
endforeach()

compress(${share}/man/man1/watchdog-monitor.1)
file(MAKE_DIRECTORY ${share}/zsh/vendor-completions ${share}/lintian/overrides)
file(RENAME ${share}/zsh/site-functions/_watchdog-monitor ${share}/zsh/vendor-completions/_watchdog-monitor)
file(REMOVE_RECURSE ${share}/zsh/site-functions)
configure_file(${debian}/lintian-overrides ${share}/lintian/overrides/watchdog-monitor COPYONLY)

string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)  # of SOURCE_DATE_EPOCH, if it is set
foreach(component monitor lib dev)
  string(TOUPPER ${component} upper)
  set(doc ${CPACK_TEMPORARY_DIRECTORY}/${component}/usr/share/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  configure_file(${debian}/copyright ${doc}/copyright COPYONLY)
  configure_file(${CPACK_WATCHDOG_SOURCE}/CHANGELOG.md ${doc}/changelog COPYONLY)
  file(WRITE ${doc}/changelog.Debian
    "watchdog-monitor (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) stable; urgency=medium\n\n"
    "  * New version. The file changelog.gz has the changes.\n\n"
    " -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
  compress(${doc}/changelog)
  compress(${doc}/changelog.Debian)
endforeach()
