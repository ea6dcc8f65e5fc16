//! Names of programs and modules that a new project file could replace.

use super::ecosystem::Ecosystem;

/// Modules that a language and its test tools load by name. A new project file that is found first would replace such a module.
#[derive(Debug, Clone, Copy)]
pub(super) struct Modules {
    /// How the path of a module can end.
    endings: &'static [&'static str],
    /// Separated by commas. A name with a trailing slash covers everything below it, one with a trailing star every name that begins so.
    names: &'static str,
}

/// Folders of a project that languages search before their own, or that are usually on the test path (`-Ilib`).
const MODULE_FOLDERS: [&str; 3] = ["src/", "lib/", ""];

impl Modules {
    /// The module that a project file would replace.
    pub(super) fn replaced_by(self, path: &str) -> Option<&'static str> {
        let inside = MODULE_FOLDERS.iter().find_map(|folder| path.strip_prefix(folder))?;
        let name = self.endings.iter().find_map(|ending| inside.strip_suffix(ending))?;
        self.names.split(',').find(|module| match module.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => *module == name || module.ends_with('/') && name.starts_with(module),
        })
    }
}

/// Programs that checks start by name. A new file with such a name that comes first on the path would replace the program.
pub(super) const PROGRAMS: &str = "\
python,python2,python3,py,pip,pytest,tox,nox,uv,poetry,ruff,mypy,coverage,node,npm,npx,pnpm,yarn,bun,deno,tsc,jest,vitest,mocha,eslint,\
cargo,rustc,rustdoc,go,gofmt,java,javac,mvn,gradle,ruby,bundle,rake,rspec,perl,prove,php,composer,phpunit,dotnet,mix,elixir,\
make,gmake,ninja,cmake,ctest,cc,gcc,clang,g++,clang++,ld,sh,bash,dash,zsh,env,git,xargs,find,grep,sed,awk,diff,cmp,true,false,test,[,timeout,\
sudo,nice,time,which,bats,shellcheck,just";

impl Ecosystem {
    pub(super) fn modules(self) -> Option<Modules> {
        match self {
            Self::Python => Some(Modules { endings: &["/__init__.py", ".py"], names: PYTHON_MODULES }),
            Self::Perl => Some(Modules { endings: &[".pm"], names: PERL_MODULES }),
            Self::Ruby => Some(Modules { endings: &[".rb"], names: RUBY_MODULES }),
            _ => None,
        }
    }
}

const PYTHON_MODULES: &str = "\
pytest,pytest_*,_pytest,pluggy,iniconfig,packaging,exceptiongroup,pygments,py,tomli,coverage,xdist,execnet,hypothesis,nose,nose2,mock,tox,nox,\
mypy,mypy_extensions,mypyc,ruff,flake8,pyflakes,pycodestyle,pylint,astroid,black,isort,bandit,attr,attrs,typing_extensions,pip,\
setuptools,pkg_resources,wheel,_virtualenv,sitecustomize,usercustomize,\
abc,argparse,array,ast,asyncio,atexit,base64,bdb,binascii,bisect,builtins,bz2,cProfile,calendar,cgi,cmath,cmd,code,codecs,codeop,\
collections,colorsys,compileall,concurrent,configparser,contextlib,contextvars,copy,copyreg,csv,ctypes,curses,dataclasses,datetime,\
dbm,decimal,difflib,dis,distutils,doctest,email,encodings,enum,errno,faulthandler,fcntl,filecmp,fileinput,fnmatch,fractions,ftplib,\
functools,gc,genericpath,getopt,getpass,gettext,glob,graphlib,grp,gzip,hashlib,heapq,hmac,html,http,imp,importlib,inspect,io,ipaddress,\
itertools,json,keyword,linecache,locale,logging,lzma,marshal,math,mimetypes,mmap,modulefinder,multiprocessing,netrc,ntpath,numbers,\
opcode,operator,optparse,os,pathlib,pdb,pickle,pickletools,pkgutil,platform,plistlib,posix,posixpath,pprint,profile,pstats,pty,pwd,\
py_compile,pyclbr,pydoc,pyexpat,queue,quopri,random,re,readline,reprlib,resource,runpy,sched,secrets,select,selectors,shelve,shlex,\
shutil,signal,site,smtplib,socket,socketserver,sqlite3,sre_compile,sre_constants,sre_parse,ssl,stat,statistics,string,stringprep,\
struct,subprocess,symtable,sys,sysconfig,syslog,tarfile,tempfile,termios,textwrap,threading,time,timeit,token,tokenize,tomllib,trace,\
traceback,tracemalloc,tty,types,typing,unicodedata,unittest,urllib,uuid,venv,warnings,weakref,webbrowser,xml,zipapp,zipfile,zipimport,\
zlib,zoneinfo";

const PERL_MODULES: &str = "\
Test,Test/,Test2,Test2/,TAP/,App/Prove,App/Prove/,ok,\
autodie,autouse,base,bigint,bignum,bigrat,blib,builtin,bytes,charnames,constant,diagnostics,experimental,feature,fields,if,integer,lib,\
locale,mro,open,overload,overloading,parent,re,sigtrap,sort,strict,subs,threads,utf8,vars,version,warnings,\
AutoLoader,Benchmark,Carp,Carp/Heavy,Config,Cwd,Data/Dumper,Digest/MD5,Digest/SHA,DynaLoader,Encode,English,Env,Errno,Exporter,\
Exporter/Heavy,Fcntl,File/Basename,File/Compare,File/Copy,File/Find,File/Path,File/Spec,File/Spec/Functions,File/Spec/Unix,File/Temp,\
FindBin,Getopt/Long,Getopt/Std,Hash/Util,IO,IO/File,IO/Handle,IO/Select,IPC/Open2,IPC/Open3,JSON/PP,List/Util,MIME/Base64,\
Math/BigFloat,Math/BigInt,Module/Load,POSIX,PerlIO,Scalar/Util,SelectSaver,Socket,Storable,Symbol,Sys/Hostname,Term/ANSIColor,\
Text/Balanced,Text/ParseWords,Text/Wrap,Tie/Array,Tie/Hash,Tie/Scalar,Time/HiRes,Time/Local,Time/Piece,UNIVERSAL,Unicode/Normalize,\
XSLoader";

const RUBY_MODULES: &str = "\
minitest,minitest/,test/unit,test/unit/,test-unit,rspec,rspec/,rake,rake/,bundler,bundler/,rubygems,rubocop,rubocop/,simplecov,mocha,mocha/,\
abbrev,base64,benchmark,bigdecimal,cgi,coverage,csv,date,delegate,digest,English,erb,etc,fcntl,fiddle,fileutils,find,forwardable,io/console,\
ipaddr,json,logger,matrix,monitor,net/http,observer,open-uri,open3,openssl,optparse,ostruct,pathname,pp,prettyprint,prime,pstore,psych,\
rbconfig,reline,ripper,securerandom,set,shellwords,singleton,socket,stringio,strscan,tempfile,time,timeout,tmpdir,tsort,uri,weakref,yaml,\
zlib";
