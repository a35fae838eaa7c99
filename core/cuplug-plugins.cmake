# Included by cuplug-config.cmake.

# cuplug_add_plugin(<plugin> <source>...): lib<plugin>.so of .cu, .c and .cpp files. Where the project
# has not enabled CUDA, the host side: of a .cu file, if there are no others, what a C++ compiler reads.
function(cuplug_add_plugin name)
  set(sources ${ARGN})
  set(cuda ${ARGN})
  list(FILTER cuda INCLUDE REGEX "\\.cu$")
  set(others ${ARGN})
  list(FILTER others EXCLUDE REGEX "\\.cu$")
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  set(has_cuda OFF)
  if(cuda AND "CUDA" IN_LIST languages)
    set(has_cuda ON)
  elseif(others)
    set(sources ${others})
  else()
    set_source_files_properties(${cuda} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS "-x;c++")
  endif()
  add_library(${name} MODULE ${sources})
  target_link_libraries(${name} PRIVATE cuplug::plugin)
  target_link_options(${name} PRIVATE LINKER:-z,now LINKER:-z,defs LINKER:--exclude-libs=ALL)
  set_target_properties(${name} PROPERTIES PREFIX lib SUFFIX .so VISIBILITY_INLINES_HIDDEN ON
    C_STANDARD 11 CXX_STANDARD 17 CUDA_STANDARD 17 CUDA_RUNTIME_LIBRARY Static)
  if(NOT has_cuda)
    target_compile_definitions(${name} PRIVATE CUPLUG_HOST_ONLY)
  else()
    # nvcc passes its architectures to the table, without letters. Other compilers do not.
    string(REGEX MATCHALL "[0-9]+[af]?" listed "${CMAKE_CUDA_ARCHITECTURES}")
    list(REMOVE_DUPLICATES listed)
    list(TRANSFORM listed REPLACE "([0-9]+)" "\\10")
    string(REPLACE ";" "," listed "${listed}")
    target_compile_definitions(${name} PRIVATE
      "$<$<COMPILE_LANGUAGE:C,CXX>:CUPLUG_ARCHITECTURES=${listed}>")
    if(listed MATCHES "[af]")
      if(CMAKE_CUDA_COMPILER_ID STREQUAL "NVIDIA") # takes a comma for the end of a macro
        string(REPLACE "," "\\," listed "${listed}")
      endif()
      target_compile_definitions(${name} PRIVATE
        "$<$<COMPILE_LANGUAGE:CUDA>:CUPLUG_ARCHITECTURES=${listed}>")
    endif()
  endif()
  if(has_cuda)
    _cuplug_add_note(${name} CUDA cu ${sources})
  elseif(sources MATCHES "\\.(cu|cpp|cc|cxx)(;|$)")
    _cuplug_add_note(${name} CXX cpp ${sources})
  else()
    _cuplug_add_note(${name} C c ${sources})
  endif()
endfunction()

# Adds the note of the build (docs/abi.md), with the options for a language and the commit of sources.
# It is written in each build, since the commit may differ.
function(_cuplug_add_note name language suffix)
  set(made "${CMAKE_CURRENT_BINARY_DIR}/cuplug-notes/${name}")
  set(flags "${CMAKE_${language}_FLAGS}")
  foreach(config IN LISTS CMAKE_BUILD_TYPE CMAKE_CONFIGURATION_TYPES)
    string(TOUPPER "${config}" upper)
    string(APPEND flags " $<$<CONFIG:${config}>:${CMAKE_${language}_FLAGS_${upper}}>")
  endforeach()
  set(definitions "$<TARGET_PROPERTY:${name},COMPILE_DEFINITIONS>")
  string(APPEND flags " $<$<BOOL:${definitions}>:-D$<JOIN:${definitions}, -D>>"
    " $<JOIN:$<TARGET_PROPERTY:${name},COMPILE_OPTIONS>, >")
  file(GENERATE OUTPUT "${made}/$<CONFIG>.$<COMPILE_LANGUAGE>" CONTENT "${flags}")
  add_custom_target(${name}_note BYPRODUCTS "${made}/note.${suffix}" VERBATIM
    COMMAND ${CMAKE_COMMAND} "-DNOTE=${made}/note.${suffix}" "-DFLAGS=${made}/$<CONFIG>.${language}"
      "-DFOLDER=${CMAKE_CURRENT_SOURCE_DIR}" "-DSOURCES=${ARGN}"
      -P "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/cuplug-note.cmake")
  add_dependencies(${name} ${name}_note)
  set_source_files_properties("${made}/note.${suffix}" PROPERTIES GENERATED ON)
  target_sources(${name} PRIVATE "${made}/note.${suffix}")
endfunction()

# cuplug_install_plugins(<folder> [STUBS <module>] [TYPED] <plugin>...): install plugins into the
# folder of a Python package, once `cuplug check` finds no error in them; with the type stubs of a
# module that has their operators, and with typed functions for Cython.
function(cuplug_install_plugins folder)
  cmake_parse_arguments(PARSE_ARGV 1 told "TYPED" "STUBS" "")
  set(plugins ${told_UNPARSED_ARGUMENTS})
  find_package(Python REQUIRED COMPONENTS Interpreter)
  set(cuplug ${Python_EXECUTABLE} -m cuplug)
  set(made "${CMAKE_CURRENT_BINARY_DIR}/written/${folder}")
  set(files)
  set(commands)
  foreach(name IN LISTS plugins)
    list(APPEND files $<TARGET_FILE:${name}>)
    list(APPEND commands COMMAND ${cuplug} check $<TARGET_FILE:${name}>)
    if(told_TYPED)
      list(APPEND commands COMMAND ${cuplug} bind $<TARGET_FILE:${name}> -o "${made}")
    endif()
  endforeach()
  if(told_STUBS)
    list(APPEND commands COMMAND ${cuplug} stubs ${files} -o "${made}" --name ${told_STUBS})
  endif()
  string(MAKE_C_IDENTIFIER "cuplug_plugins_in_${folder}" target)
  add_custom_target(${target} ALL ${commands} DEPENDS ${plugins} VERBATIM)
  install(TARGETS ${plugins} LIBRARY DESTINATION "${folder}")
  install(DIRECTORY "${made}/" DESTINATION "${folder}" OPTIONAL
    FILES_MATCHING PATTERN "*.pyi" PATTERN "*.pxd")
endfunction()

# cuplug_add_cython_module(<folder> <name> <source.pyx>): a Cython module of the Python package in the
# folder. It can cimport cuplug.typed and, after `cuplug_install_plugins(<folder> TYPED ...)`, the typed
# functions of these plugins: `from my_operators.twice_typed cimport twice`.
function(cuplug_add_cython_module folder name source)
  find_package(Python REQUIRED COMPONENTS Interpreter Development.Module)
  set(made "${CMAKE_CURRENT_BINARY_DIR}/written")
  set(code "${CMAKE_CURRENT_BINARY_DIR}/cython/${folder}/${name}.c")
  get_filename_component(text "${source}" ABSOLUTE)
  string(REPLACE "/" "." module "${folder}/${name}")
  string(MAKE_C_IDENTIFIER "cuplug_plugins_in_${folder}" plugins)
  if(NOT TARGET ${plugins})
    set(plugins "")
  endif()
  file(MAKE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/cython/${folder}")
  add_custom_command(OUTPUT "${code}"
    COMMAND ${Python_EXECUTABLE} -m cython -3 --module-name ${module} -I "${made}" -o "${code}" "${text}"
    DEPENDS "${text}" ${plugins} VERBATIM)
  Python_add_library(${name} MODULE WITH_SOABI "${code}")
  target_link_libraries(${name} PRIVATE cuplug::plugin)
  install(TARGETS ${name} LIBRARY DESTINATION "${folder}")
endfunction()
